"""The cuTile Python front end, run on declared sources alone. The tool around it is
`tilebuild.tools.python_ir`."""

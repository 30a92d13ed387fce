"""The room where the verbs meet: load, analyse, execute, report. `session.py` composes them; beside it lie
what is asked for, which files and actions that comes to, what came of it, and what all of it depended on.
"""

from __future__ import annotations

from tilebuild.watching.debounce import Debounce


def test_without_a_hint_there_is_nothing_to_wait_for() -> None:
    debounce = Debounce()
    assert debounce.remaining(5.0) is None


def test_silence_ends_a_burst() -> None:
    debounce = Debounce(quiet_s=0.25)
    debounce.hint(1.0)
    assert debounce.remaining(1.0) == 0.25
    assert debounce.remaining(1.125) == 0.125
    assert debounce.remaining(1.25) == 0.0


def test_each_hint_extends_the_burst() -> None:
    debounce = Debounce(quiet_s=0.25)
    debounce.hint(1.0)
    debounce.hint(1.125)
    assert debounce.remaining(1.25) == 0.125
    assert debounce.last == 1.125


def test_a_file_that_never_rests_does_not_put_the_end_off_for_ever() -> None:
    debounce = Debounce(quiet_s=0.25, longest_s=2.0)
    now = 0.0
    debounce.hint(now)
    while debounce.remaining(now) and now < 10:
        now += 0.125
        debounce.hint(now)
    assert now == 2.0


def test_a_longer_silence_may_be_asked_for() -> None:
    debounce = Debounce(quiet_s=0.25)
    debounce.hint(1.0)
    assert debounce.remaining(1.5, quiet_s=0.75) == 0.25
    assert debounce.remaining(1.5, quiet_s=0.125) == 0.0


def test_after_clear_a_new_burst_begins() -> None:
    debounce = Debounce(quiet_s=0.25, longest_s=1.0)
    debounce.hint(0.0)
    debounce.clear()
    assert debounce.remaining(9.0) is None
    debounce.hint(9.0)
    assert debounce.remaining(9.0) == 0.25

"""The times of a schedule, and which of them are made up for after downtime."""

from datetime import datetime, timedelta, timezone
from functools import cache
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from django_rtq import cron, every
from django_rtq.core.schedules import MAX_MISSED

DAY_MS = 86_400_000
MINUTE = timedelta(minutes=1)


def ms(text, tz="UTC", *, fold=0):
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(tz), fold=fold)
    return round(moment.timestamp() * 1000)


def following(schedule, text, number, tz="UTC"):
    """The next slots, as the clock in that zone shows them."""
    moments, after = [], ms(text, tz)
    for _ in range(number):
        after = schedule.next_ms(after)
        moments.append(datetime.fromtimestamp(after / 1000, ZoneInfo(tz)))
    return [moment.strftime("%m-%d %H:%M%z") for moment in moments]


# -- every


@pytest.mark.parametrize(
    ("start", "after", "expected"),
    [
        (0, "2026-01-01T00:00", "2026-01-01T00:20"),
        (600, "2026-01-01T00:00", "2026-01-01T00:10"),
        (600, "2026-01-01T00:10", "2026-01-01T00:30"),
        (timedelta(minutes=50), "2026-01-01T00:00", "2026-01-01T00:10"),
        (timedelta(minutes=-1), "2026-01-01T00:00", "2026-01-01T00:19"),
        (datetime(2026, 1, 1, 0, 7, tzinfo=timezone.utc), "2026-01-01T00:07", "2026-01-01T00:27"),
        (datetime(2026, 1, 1, 0, 7, tzinfo=timezone.utc), "2026-01-01T00:06:59.999", "2026-01-01T00:07"),
        (datetime(2026, 1, 1, 0, 7, tzinfo=timezone.utc), "2025-01-01T00:00", "2026-01-01T00:07"),
    ],
)
def test_the_next_slot_of_an_interval_that_starts_somewhere(start, after, expected):
    assert every(minutes=20, start=start).next_ms(ms(after)) == ms(expected)


def test_there_is_no_slot_before_the_start():
    schedule = every(minutes=20, start=datetime(2026, 1, 1, 0, 7, tzinfo=timezone.utc), missed="all")

    assert schedule.due(ms("2025-12-31T00:00"), ms("2026-01-01T00:06")) == []
    assert schedule.due(ms("2025-12-31T00:00"), ms("2026-01-01T00:30")) == [
        ms("2026-01-01T00:07"),
        ms("2026-01-01T00:27"),
    ]


def test_missed_slots_of_seconds():
    schedule = cron("*/20 * * * * *", missed="all")

    assert schedule.due(ms("2026-01-01T00:00:20"), ms("2026-01-01T00:01:05")) == [
        ms("2026-01-01T00:00:40"),
        ms("2026-01-01T00:01"),
    ]


def test_another_start_is_another_schedule():
    assert every(minutes=20).definition == every(minutes=20, start=1200).definition
    assert every(minutes=20).definition != every(minutes=20, start=600).definition


def test_slots_of_seconds_in_daylight_saving_time():
    skipped = cron("10,50 30 2 * * *", tz="Europe/Berlin")  # 02:30 does not exist on 2026-03-29

    first = skipped.next_ms(ms("2026-03-29T00:00", "Europe/Berlin"))
    assert first == ms("2026-03-29T03:00:10", "Europe/Berlin")
    assert skipped.next_ms(first) == ms("2026-03-29T03:00:50", "Europe/Berlin")


# -- cron


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("* * * * *", "2026-01-01T00:00", "2026-01-01T00:01"),
        ("* * * * *", "2026-01-01T00:00:59.999", "2026-01-01T00:01"),
        ("0 5 * * *", "2026-01-01T05:00", "2026-01-02T05:00"),
        ("0 5 * * *", "2026-01-01T04:59:59.999", "2026-01-01T05:00"),
        ("  0   5 * * MON-fri ", "2026-01-02T05:00", "2026-01-05T05:00"),
        ("*/20 8-9 * * *", "2026-01-01T09:40", "2026-01-02T08:00"),
        ("0 0 1 jan,JUL *", "2026-01-01T00:00", "2026-07-01T00:00"),
        ("0 0 29 2 *", "2026-01-01T00:00", "2028-02-29T00:00"),
        ("0 0 L * *", "2026-02-01T00:00", "2026-02-28T00:00"),
        ("0 0 * * 7", "2026-01-01T00:00", "2026-01-04T00:00"),
        ("0 0 * * mon#1", "2026-01-05T00:00", "2026-02-02T00:00"),
        ("0 0 13 * fri", "2026-01-01T00:00", "2026-01-02T00:00"),  # either, where both are given
        ("10 0/5 * * * ?", "2026-01-01T00:00:10", "2026-01-01T00:05:10"),
        ("*/20 * * * * *", "2026-01-01T00:00:20", "2026-01-01T00:00:40"),
        ("30 59 23 * * *", "2026-01-01T23:59:30", "2026-01-02T23:59:30"),
        ("0 5 ? * mon-fri", "2026-01-02T05:00", "2026-01-05T05:00"),
        ("0 0 13 * ?", "2026-01-01T00:00", "2026-01-13T00:00"),
        ("@hourly", "2026-01-01T00:30", "2026-01-01T01:00"),
        ("@Daily", "2026-01-01T00:30", "2026-01-02T00:00"),
        ("@weekly", "2026-01-01T00:30", "2026-01-04T00:00"),
        ("@monthly", "2026-01-01T00:30", "2026-02-01T00:00"),
        ("@yearly", "2026-01-01T00:30", "2027-01-01T00:00"),
    ],
)
def test_the_next_slot_of_an_expression(expression, after, expected):
    assert cron(expression).next_ms(ms(after)) == ms(expected)


@override_settings(TIME_ZONE="Asia/Tokyo")
def test_times_of_day_are_those_of_the_settings_unless_a_zone_is_named():
    assert cron("0 5 * * *").next_ms(ms("2026-01-01T00:00")) == ms("2026-01-01T20:00")
    assert cron("0 5 * * *", tz="UTC").next_ms(ms("2026-01-01T00:00")) == ms("2026-01-01T05:00")
    assert cron("0 5 * * *").explain() == "At 05:00 every day (Asia/Tokyo)"


LORD_HOWE = "Australia/Lord_Howe"
FIXED, STEPS, HOURLY = "15,45 2 * * *", "*/15 2 * * *", "0 * * * *"


@pytest.mark.parametrize(
    ("tz", "expression", "after", "expected"),
    [
        # 02:00 becomes 03:00: at once when the gap ends; what goes by the clock has nothing to show.
        ("Europe/Berlin", FIXED, "2026-03-28T12:00", ["03-29 03:00+0200", "03-30 02:15+0200"]),
        ("Europe/Berlin", STEPS, "2026-03-28T12:00", ["03-30 02:00+0200", "03-30 02:15+0200"]),
        ("Europe/Berlin", HOURLY, "2026-03-29T00:30", ["03-29 01:00+0100", "03-29 03:00+0200"]),
        # 03:00 becomes 02:00: once, in the first of both hours; what goes by the clock goes by both.
        ("Europe/Berlin", FIXED, "2026-10-24T12:00", ["10-25 02:15+0200", "10-25 02:45+0200", "10-26 02:15+0100"]),
        ("Europe/Berlin", HOURLY, "2026-10-25T01:30", ["10-25 02:00+0200", "10-25 02:00+0100", "10-25 03:00+0100"]),
        ("Europe/Berlin", "*/30 2 * * *", "2026-10-24T12:00",
         ["10-25 02:00+0200", "10-25 02:30+0200", "10-25 02:00+0100", "10-25 02:30+0100", "10-26 02:00+0100"]),
        ("America/New_York", FIXED, "2026-03-07T12:00", ["03-08 03:00-0400", "03-09 02:15-0400"]),
        ("America/New_York", "30 1 * * *", "2026-10-31T12:00", ["11-01 01:30-0400", "11-02 01:30-0500"]),
        ("America/New_York", HOURLY, "2026-11-01T00:30", ["11-01 01:00-0400", "11-01 01:00-0500", "11-01 02:00-0500"]),
        # Half an hour only.
        (LORD_HOWE, FIXED, "2026-10-03T12:00", ["10-04 02:30+1100", "10-04 02:45+1100", "10-05 02:15+1100"]),
        (LORD_HOWE, STEPS, "2026-10-03T12:00", ["10-04 02:30+1100", "10-04 02:45+1100", "10-05 02:00+1100"]),
        (LORD_HOWE, "45 1 * * *", "2026-04-04T12:00", ["04-05 01:45+1100", "04-06 01:45+1030"]),
        (LORD_HOWE, "*/20 2 * * *", "2026-04-04T12:00",
         ["04-05 02:00+1030", "04-05 02:20+1030", "04-05 02:40+1030", "04-06 02:00+1030"]),
        # No such day: Samoa went to the other side of the date line.
        ("Pacific/Apia", "30 2 * * *", "2011-12-29T12:00", ["12-31 00:00+1400", "12-31 02:30+1400"]),
        # A gap at midnight.
        ("Africa/Cairo", "30 0 * * *", "2026-04-23T12:00", ["04-24 01:00+0300", "04-25 00:30+0300"]),
    ],
)  # fmt: skip
def test_daylight_saving(tz, expression, after, expected):
    assert following(cron(expression, tz=tz), after, len(expected), tz) == expected


def test_in_the_second_of_both_hours_the_next_slot_still_lies_ahead():
    after = ms("2026-10-25T02:10", "Europe/Berlin", fold=1)

    assert cron("30 2 * * *", tz="Europe/Berlin").next_ms(after) == ms("2026-10-26T02:30", "Europe/Berlin")


# -- against the minutes on the wall, one by one


FIELDS = st.tuples(
    st.sampled_from(["*", "*/7", "*/30", "0", "15", "30,45", "10-50/20", "59"]),
    st.sampled_from(["*", "*/2", "*/5", "0", "1", "2", "1-3", "2,23"]),
    st.sampled_from(["*", "1", "29", "25-31", "*/2"]),
    st.sampled_from(["*", "3", "4,10", "3-11"]),
    st.sampled_from(["*", "0", "7", "1-5", "6,0"]),
)
ZONES = {
    "Europe/Berlin": ["2026-03-29", "2026-10-25"],
    "America/New_York": ["2026-03-08", "2026-11-01"],
    LORD_HOWE: ["2026-10-04", "2026-04-05"],
    "America/Havana": ["2026-03-08", "2026-11-01"],
    "Africa/Cairo": ["2026-04-24", "2026-10-30"],
    "Asia/Kolkata": ["2026-03-01"],
}
DAYS = [(zone, day) for zone, days in ZONES.items() for day in days]


@cache
def values(text, low, high):
    found = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        found |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def fits(fields, wall):
    """Whether the clock and the calendar on the wall show what an expression says."""
    minute, hour, day, month, weekday = fields
    is_day = wall.day in values(day, 1, 31)
    is_weekday = wall.isoweekday() in {7 if n == 0 else n for n in values(weekday, 0, 7)}
    both = day.startswith("*") or weekday.startswith("*")
    return (
        wall.minute in values(minute, 0, 59)
        and wall.hour in values(hour, 0, 23)
        and wall.month in values(month, 1, 12)
        and (is_day and is_weekday if both else is_day or is_weekday)
    )


def expected_slots(fields, start, minutes, zone):
    """Go from minute to minute of the real time, with an eye on the wall."""
    is_fixed = not fields[0].startswith("*") and not fields[1].startswith("*")
    found, shown = [], set()
    before = (start - MINUTE).astimezone(zone).replace(tzinfo=None)
    for number in range(minutes):
        moment = start + number * MINUTE
        wall = moment.astimezone(zone).replace(tzinfo=None)
        skipped = []
        while is_fixed and before + MINUTE < wall:
            before += MINUTE
            skipped.append(before)
        if any(fits(fields, each) for each in skipped) or (
            fits(fields, wall) and not (is_fixed and (wall in shown or moment.astimezone(zone).fold))
        ):
            found.append(round(moment.timestamp() * 1000))
        before = wall
        shown.add(wall)
    return found


@settings(max_examples=50)
@given(FIELDS, st.sampled_from(DAYS), st.integers(0, 1500))
def test_slots_are_those_that_somebody_would_see_who_looked_every_minute(fields, place, late):
    zone, day = place
    start = datetime.fromisoformat(day).replace(tzinfo=timezone.utc) - timedelta(days=1) + late * MINUTE
    minutes = 2000
    expected = expected_slots(fields, start, minutes, ZoneInfo(zone))
    schedule = cron(" ".join(fields), tz=zone, missed="all")
    first_ms = round(start.timestamp() * 1000)
    last_ms = first_ms + minutes * 60_000 - 1

    slots, after = [], first_ms - 1
    while (after := schedule.next_ms(after)) <= last_ms:
        slots.append(after)

    assert slots == expected
    assert schedule.due(first_ms - 1, last_ms) == expected[-MAX_MISSED:]


# -- every


def test_every_does_not_drift():
    schedule, after, seen = every(seconds=0.7), ms("2026-01-01T00:00"), []
    for late_ms in (0, 3, 699, 12, 350):
        after = schedule.next_ms(after + late_ms)
        seen.append(after)

    assert all(slot % 700 == 0 for slot in seen)
    assert seen == sorted(set(seen))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seconds": 0.2}, "Every 0.2 s"),
        ({"seconds": 1}, "Every second"),
        ({"minutes": 1}, "Every minute"),
        ({"seconds": 90}, "Every 1 minute 30 s"),
        ({"hours": 26}, "Every 1 day 2 hours"),
        ({"days": 7}, "Every 7 days"),
    ],
)
def test_every_in_words(options, words):
    assert every(**options).explain() == words


# -- what was missed


def schedules(missed):
    return [cron("* * * * *", tz="UTC", missed=missed), every(minutes=1, missed=missed)]


NOON = ms("2026-01-01T12:00")


@pytest.mark.parametrize(
    ("missed", "silence_ms", "late_ms", "expected"),
    [
        # in time: the policy makes no difference
        ("skip", 60_000, 5, [0]),
        ("once", 60_000, 5, [0]),
        ("all", 60_000, 5, [0]),
        # nothing is due yet
        ("all", 0, 59_999, []),
        # three minutes of silence
        ("skip", 180_000, 5, [0]),
        ("once", 180_000, 5, [0]),
        ("all", 180_000, 5, [-120_000, -60_000, 0]),
    ],
)
def test_the_policy_for_slots_that_were_missed(missed, silence_ms, late_ms, expected):
    for schedule in schedules(missed):
        assert schedule.due(NOON - silence_ms, NOON + late_ms) == [NOON + slot for slot in expected]


@pytest.mark.parametrize(
    ("missed", "days"),
    [("skip", []), ("once", [1]), ("all", [-1, 0, 1])],
)
def test_what_is_long_past_is_skipped_if_that_is_wanted(missed, days):
    last, now = ms("2025-12-30T05:00"), ms("2026-01-01T12:00")
    for schedule in (cron("0 5 * * *", tz="UTC", missed=missed), every(days=1, missed=missed)):
        first = next(islice(schedule._backwards(now), 0, 1))
        assert schedule.due(last, now)[-1:] == ([first] if days else [])
    assert len(cron("0 5 * * *", tz="UTC", missed=missed).due(last, now)) == (2 if missed == "all" else len(days))


@pytest.mark.parametrize("schedule", [cron("* * * * *", missed="all"), every(seconds=0.1, missed="all")])
def test_of_a_very_long_silence_the_newest_slots_are_made_up_for(schedule):
    slots = schedule.due(0, NOON + 1)

    assert len(slots) == MAX_MISSED
    assert slots[-1] == NOON
    assert [schedule.next_ms(slot) for slot in slots[:-1]] == slots[1:]


@pytest.mark.parametrize("missed", ["skip", "once", "all"])
def test_a_clock_that_went_back_fires_nothing(missed):
    for schedule in schedules(missed):
        assert schedule.due(NOON, NOON - DAY_MS) == []
        assert schedule.due(NOON, NOON) == []


# -- definitions


@override_settings(TIME_ZONE="UTC")
def test_the_definition_is_what_the_moments_follow_from():
    same = cron("0 5 * * *").definition
    assert cron(" 0 5  * * *", name="x", args=[1], missed="all", overlap="skip", tz="UTC").definition == same
    others = {cron("0 6 * * *").definition, cron("0 5 * * *", tz="Asia/Tokyo").definition, every(days=1).definition}
    assert len({same, *others}) == 4
    with override_settings(TIME_ZONE="Asia/Tokyo"):
        assert cron("0 5 * * *").definition != same

"""What link() leaves out of a script, and what Redis then creates in a call."""

import re

from django_rtq.core.broker.scripts import link

NUMBERS = """-- numbers: shared by the other parts.

local STEP = 2

local function double(n)
  return n * STEP
end

local function unused(n)
  return double(n)
end
"""
RARE = """-- rare: needed by few calls.
-- created when first called
-- uses: numbers

local function add_step(n)
  return n + double(1)
end

local function fourfold(n)
  return add_step(double(double(n)) - 2)
end
"""
RARER = """-- rarer: calls the functions of another part that is created when first called.
-- created when first called
-- uses: rare

local function eightfold(n)
  local rare = { fourfold = 1 }
  return fourfold(n) * 2 * rare.fourfold
end
"""
PARTS = {"numbers": NUMBERS, "rare": RARE, "rarer": RARER}


def created_at_once(text):
    return re.findall(r"^local function (\w+)", text, re.MULTILINE)


def test_functions_that_no_call_reaches_are_left_out(redis):
    text = link("return double(21)\n", PARTS)

    assert created_at_once(text) == ["double"]
    assert "fourfold" not in text
    assert redis.eval(text, 0) == 42


def test_a_script_without_parts_stays_as_it_is():
    assert link("return 1\n", {}) == "return 1\n"


def test_rare_functions_and_what_only_they_use_are_created_when_one_is_called(redis):
    text = link('if ARGV[1] == "rare" then return eightfold(1) end\nreturn "none"\n', PARTS)

    assert created_at_once(text) == []
    assert redis.eval(text, 0, "rare") == 8
    assert redis.eval(text, 0, "") == b"none"


def test_what_rare_functions_share_with_the_script_is_created_once(redis):
    text = link("return { double(1), fourfold(1), eightfold(1) }\n", PARTS)

    assert created_at_once(text) == ["double"]
    assert text.count("function double(") == text.count("function fourfold(") == 1
    assert redis.eval(text, 0) == [2, 4, 8]


def test_names_in_comments_and_behind_a_dot_use_nothing():
    text = link("-- calls double(1)\nlocal own = {}\nreturn own.double, own.fourfold\n", PARTS)

    assert created_at_once(text) == []
    assert "lazy" not in text

"""Each Lua file keeps the rules for scripts, and its header tells the truth."""

import re
from pathlib import Path

import hiredis
import pytest

from django_rtq.broker import scripts
from django_rtq.broker.keys import Keys
from django_rtq.broker.scripts import SCRIPTS, pack, script_of
from tests.broker.model.script_calls import READING, SCENES

LUA = Path(scripts.__file__).parent / "lua"
FILES = {path.stem: path.read_text() for path in sorted(LUA.glob("*.lua"))}
PARTS = {name: text for name, text in FILES.items() if name.startswith("_")}

# What Redis 6.2 and Valkey know. What is not here has to be looked up: LMPOP, ZMPOP, SINTERCARD, EXPIRETIME, HEXPIRE,
# FUNCTION and every option of EXPIRE came later; KEYS, SCAN and their like cost as much as there is.
COMMANDS = set(
    """
    DEL EXISTS EXPIRE GET INCR INCRBY SETNX TIME
    HDEL HEXISTS HGET HGETALL HINCRBY HKEYS HLEN HMGET HSET
    LINDEX LLEN LPOP LPOS LPUSH LRANGE LTRIM PEXPIRE RPUSH SET
    ZADD ZCARD ZINCRBY ZMSCORE ZRANGE ZRANGEBYSCORE ZREM ZREMRANGEBYRANK ZREVRANGE ZSCORE
    """.split()
)
PURPOSES = {"returns", "sent twice:"}

every_file = pytest.mark.parametrize("name", FILES)
every_script = pytest.mark.parametrize("name", SCRIPTS)


def header_of(name):
    """The comment that a file begins with."""
    return "\n".join(re.match(r"(?:--.*\n)+", FILES[name]).group().splitlines())


def code_of(name):
    """All but comments."""
    return re.sub(r"(?m)\s*--.*$", "", FILES[name])


def keys_in_header(name):
    return re.findall(r"^-- KEYS\[(\d+)\] (\w+)", header_of(name), re.MULTILINE)


def arguments_in_header(name):
    return re.findall(r"^-- ARGV\[(\d+|\.\.\.)\] (\w+)", header_of(name), re.MULTILINE)


def names_in_body(name):
    """The names that `named` gives to the keys, and to which."""
    given = re.findall(r"(\w+) = keys\[n \+ (\d+)\]", SCRIPTS[name].text)
    assert [int(place) for _, place in given] == list(range(1, len(given) + 1))
    return [key for key, _ in given]


def naming_ends(name):
    """Where the lines end that give names to keys and arguments."""
    code = code_of(name)
    naming = r"local .*|for i = .*ARGV.* end|while KEYS.* end|"
    lines = code.splitlines()
    last = max(i for i, line in enumerate(lines) if re.search(r"\bKEYS|ARGV|named\(", line))
    between = lines[: last + 1]
    return [line for line in between if line and not re.fullmatch(naming, line)], "\n".join(lines[last + 1 :])


def functions_of(part):
    """Each function of a part, with its text."""
    return dict(re.findall(r"^local function (\w+)(\(.*?^end)$", code_of(part), re.MULTILINE | re.DOTALL))


def used_parts(name):
    found = re.search(r"^-- uses: (.*)$", header_of(name), re.MULTILINE)
    return found.group(1).split() if found else []


def reach_of(name):
    """The code of a script with that of all functions that it can come to."""
    functions = {}
    for part in used_parts(name):
        functions |= functions_of(part)
    reached, todo = "", [code_of(name)]
    while todo:
        text = todo.pop()
        reached += text
        todo += [functions.pop(word) for word in set(re.findall(r"\w+(?=\()", text)) if word in functions]
    return reached


def keys_touched(code):
    """The keys that code takes from `q`. Those it takes by name it also has as words."""
    return set(re.findall(r"\bq\.(?!has_)(\w+)", code))


@every_script
def test_keys_are_numbered_and_named_in_order(name):
    listed = keys_in_header(name)

    assert [int(number) for number, _ in listed] == list(range(1, len(listed) + 1))
    assert names_in_body(name) == [key for _, key in listed]
    assert len({key for _, key in listed}) == len(listed)


@every_script
def test_arguments_are_numbered_and_all_are_taken(name):
    numbers = [number for number, _ in arguments_in_header(name)]
    singles, rest = [int(n) for n in numbers if n != "..."], numbers[-1:] == ["..."]
    code = code_of(name)

    assert singles == list(range(1, len(singles) + 1))
    assert numbers.count("...") == int(rest)
    assert {int(n) for n in re.findall(r"ARGV\[(\d+)\]", code)} == set(singles)
    assert bool(re.search(r"ARGV(?!\[\d)|ARGV\[i\]", code)) == rest


@every_script
def test_after_the_naming_lines_no_key_or_argument_appears_by_number(name):
    strange, rest = naming_ends(name)

    assert strange == []
    assert not re.search(r"\bKEYS\b", rest)  # HKEYS is a command
    assert "ARGV" not in rest


@every_script
def test_every_key_that_is_named_is_used_and_every_key_that_is_used_is_named(name):
    named, used = set(names_in_body(name)), keys_touched(reach_of(name))
    reads_by_name = {"failures", "crashes", "since", "ghosts"} if "q[name]" in code_of(name) else set()

    assert used | reads_by_name == named


@every_script
def test_the_keys_are_those_of_a_queue(name):
    keys = Keys("rtq").of("mail")

    for _, key in keys_in_header(name):
        assert getattr(keys, "running_of" if key == "running" else key).startswith(b"{rtq:mail}:")


@every_script
def test_the_header_says_what_it_does_and_what_happens_when_it_is_sent_twice(name):
    header = header_of(name)

    assert header.startswith(f"-- {name}: ")
    assert "\n-- returns " in header
    assert "\n-- sent twice: " in header


@every_file
def test_what_it_uses_exists_and_is_used(name):
    called = set(re.findall(r"\w+(?=\()", "".join(code_of(each) for each in [name, *used_parts(name)])))

    for part in used_parts(name):
        assert part in PARTS
        assert set(functions_of(part)) & called


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_used_by_some_script(name):
    assert header_of(name).startswith(f"-- {name}: ")
    assert any(name in used_parts(script) for script in SCRIPTS)
    assert all(any(f"{function}(" in reach_of(script) for script in SCRIPTS) for function in functions_of(name))


@every_file
def test_only_commands_of_redis_6_2_are_called(name):
    calls = re.findall(r"redis\.p?call\(([^,)]*)", code_of(name))

    called = {word for call in calls for word in re.findall(r'"(\w+)"', call)}
    assert all('"' in call for call in calls)
    assert called <= COMMANDS


@every_file
def test_payloads_are_never_decoded_and_clocks_never_asked_but_through_now_ms(name):
    code = code_of(name)

    assert not re.search(r"cjson|cmsgpack|math\.random|os\.|loadstring|redis\.pcall", code)
    assert ('"TIME"' in code) == (name == "_prelude")


@every_script
def test_who_drains_a_full_server_begins_its_writes_with_one_that_is_allowed(name):
    has_scratch = "scratch" in names_in_body(name)

    assert has_scratch == (name not in {"begin", "enqueue", "enqueue_many", "enqueue_unique", "fire", *READING})
    if has_scratch:
        assert code_of(name).count('redis.call("DEL", q.scratch)') == 1 or "end_runs(" in code_of(name)


@every_script
def test_it_has_a_test_module_and_a_scene(name):
    assert (Path(__file__).parent / f"test_{name}.py").exists()
    assert name in SCENES


@every_script
def test_what_is_called_begins_with_what_it_uses(name):
    text = SCRIPTS[name].text

    assert text.endswith(FILES[name])
    assert [text.index(PARTS[part]) for part in used_parts(name)] == sorted(
        text.index(PARTS[part]) for part in used_parts(name)
    )


def test_a_call_names_its_keys_in_the_order_of_the_header():
    keys = Keys("rtq").of("mail")

    ack = SCRIPTS["ack"].call(keys, (10, "id"), worker="w1")
    assert ack[:5] == (b"EVALSHA", SCRIPTS["ack"].sha, len(ack) - 5, keys.running("w1"), keys.jobs)
    assert ack[-2:] == (10, "id")
    assert SCRIPTS["find"].call(keys, ("id",))[-2:] == (keys.kept, "id")


@pytest.mark.parametrize("text", ["", "7", "mail", 'a "\\r\\n$1\r\n', "\x00", "é", "🦄", "x" * 100_000])
def test_a_packed_call_is_what_the_packer_makes_of_the_call(text):
    keys, arguments = Keys("größe").of("mail"), ("id", -100, 3, text, "")
    script = SCRIPTS["enqueue"]

    packed = script.packed_call(keys, arguments)

    assert pack(packed) == hiredis.pack_command(script.call(keys, arguments))
    assert script_of(packed) is script


def test_a_claim_of_several_queues_names_the_keys_of_each():
    keys = Keys("rtq")
    command = SCRIPTS["claim"].call_many([keys.of("high"), keys.of("low")], ("w1", 1, "1"), worker="w1")

    size = len(keys_in_header("claim"))
    assert command[2] == 2 * size
    assert command[3] == keys.of("high").paused
    assert command[3 + size] == keys.of("low").paused
    assert command[3 + size + 2] == keys.of("low").running("w1")
    assert command[-3:] == ("w1", 1, "1")

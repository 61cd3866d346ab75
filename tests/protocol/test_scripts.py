"""Each Lua file keeps the rules for scripts, and its header tells the truth."""

import re
import subprocess
import sys
from functools import cache

import pytest

import django_rtq
from django_rtq.core.broker import scripts
from django_rtq.core.broker.keys import QUEUE_KEYS, Keys
from django_rtq.core.broker.redis.client import RedisClient
from django_rtq.core.broker.redis.commands import name_of
from django_rtq.core.broker.scripts import REFUSED, SCRIPTS
from django_rtq.exceptions import BrokerRefused
from tests.markdown import section
from tests.protocol.model.players import module_of
from tests.protocol.model.script_calls import ALL_CALLS, READ_ONLY, SCRIPT_CALLS, prepared


def files(pattern):
    """Those of the core and of all apps."""
    return sorted(path for folder in scripts.LUA for path in folder.glob(pattern))


PARTS = {f"lib/{path.stem}": path.read_text() for path in files("lib/*.lua")}
QUERIES = {path.stem: path.read_text() for path in files("queries/*.lua")}
FILES = {path.stem: path.read_text() for path in files("*.lua")} | QUERIES | PARTS

# What Redis 6.2 and Valkey know. What is not here has to be looked up: LMPOP, ZMPOP, SINTERCARD, EXPIRETIME, HEXPIRE,
# FUNCTION and every option of EXPIRE came later; KEYS, SCAN and their like cost as much as there is.
COMMANDS = set(
    """
    BITCOUNT BITFIELD DEL EXISTS EXPIRE GET INCR INCRBY RENAME SETNX TIME UNLINK
    HDEL HEXISTS HGET HGETALL HINCRBY HKEYS HLEN HMGET HRANDFIELD HSET HSETNX HSTRLEN HVALS
    LINDEX LLEN LPOP LPOS LPUSH LRANGE LREM LTRIM PERSIST PEXPIRE
    PTTL RPOP RPUSH SADD SCARD SET SISMEMBER SMISMEMBER
    SREM
    ZADD ZCARD ZCOUNT ZINCRBY ZMSCORE ZRANGE ZRANGEBYSCORE ZRANK ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE
    ZREVRANGE ZREVRANGEBYSCORE ZREVRANK ZSCORE
    """.split()
)

every_file = pytest.mark.parametrize("name", FILES)
every_script = pytest.mark.parametrize("name", SCRIPTS)


def header_of(name):
    """The comment that a file begins with."""
    return "\n".join(re.match(r"(?:--.*\n)+", FILES[name]).group().splitlines())


@cache
def code_of(name):
    """All but comments."""
    return re.sub(r"(?m)\s*--.*$", "", FILES[name])


def arguments_in_header(name):
    return re.findall(r"^-- ARGV\[(\d+|\.\.\.)\] (\w+)", header_of(name), re.MULTILINE)


ATTRIBUTES = {key.name: attribute for attribute, key in QUEUE_KEYS.items()}  # by the end of the name in Redis


def without_names(text):
    """The text as it is in the files."""
    return re.sub(r'\btag \.\. "([^"]*)"', lambda made: ATTRIBUTES[made[1]], text)


def naming_ends(name):
    """Where the lines end that give names to keys and arguments."""
    code = code_of(name)
    naming = r"local .*|for i = .*(?:ARGV|KEYS).* end|"
    lines = code.splitlines()
    last = max(i for i, line in enumerate(lines) if re.search(r"\bKEYS|ARGV|named\(\)", line))
    between = lines[: last + 1]
    return [line for line in between if line and not re.fullmatch(naming, line)], "\n".join(lines[last + 1 :])


@cache
def functions_of(part):
    return dict(re.findall(r"^local function (\w+)(\(.*?^end)$", code_of(part), re.MULTILINE | re.DOTALL))


def constants_of(part):
    lines = re.findall(r"^local ([A-Z_, 0-9]+) =", code_of(part), re.MULTILINE)
    return {name for line in lines for name in re.findall(r"\w+", line)}


def names_used(name):
    """The functions that a file calls, and the constants that it reads."""
    code = re.sub(r'"[^"\n]*"', '""', code_of(name))
    return set(re.findall(r"(?<![.\w])[a-z_]\w*(?=\()|(?<![.\w])[A-Z][A-Z_]+\b", code))


def local_to(name):
    """The functions that a file defines for itself."""
    return set(re.findall(r"local function (\w+)", code_of(name)))


def direct_parts(name):
    """The parts that the header of a file names."""
    found = re.search(r"^-- uses: (.*)$", header_of(name), re.MULTILINE)
    return [f"lib/{part}" for part in found.group(1).split()] if found else []


@cache
def used_parts(name):
    """All parts that a file uses, directly or through others."""
    found, todo = set(), direct_parts(name)
    while todo:
        part = todo.pop()
        todo += direct_parts(part) if part not in found else []
        found.add(part)
    return found


@cache
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


@every_script
def test_arguments_are_numbered_and_all_are_taken(name):
    numbers = [number for number, _ in arguments_in_header(name)]
    singles, rest = [int(n) for n in numbers if n != "..."], numbers[-1:] == ["..."]
    code = code_of(name)

    assert singles == list(range(1, len(singles) + 1))
    assert numbers.count("...") == int(rest)
    assert {int(n) for n in re.findall(r"ARGV\[(\d+)\]", code)} == set(singles)
    assert bool(re.search(r"ARGV(?!\[\d)|ARGV\[i\]", code)) == rest


def widths_in_header(name):
    """How many arguments each row of the repeated ones has; nothing where rows differ."""
    (text,) = re.findall(r"^-- ARGV\[\.\.\.\] \w+ +(.*(?:\n--  .*)*)", header_of(name), re.MULTILINE) or [""]
    fields = re.match(r"of each[\w ]*: ([^;]+);(?! then)", re.sub(r"\(.*?\)|\n-- *", "", text))
    return [len(fields[1].split(", "))] if fields else [int(n) for n in re.findall(r"with (\d+) arguments", text)]


@pytest.mark.parametrize("scene", ALL_CALLS)
def test_calls_send_the_arguments_of_the_header(redis, broker, monkeypatch, scene):
    sent, exchange = set(), RedisClient._exchange

    def checked(self, commands, **options):
        for command in commands:
            name = name_of(command).removeprefix("EVALSHA ")
            if name in SCRIPTS:
                sent.add(name)
                check(name, *command[2:])
        return exchange(self, commands, **options)

    def check(name, keys, *rest):
        numbers = [number for number, _ in arguments_in_header(name)]
        more = len(rest) - keys - len(numbers) + numbers.count("...")
        widths = [rest[keys + 1]] if name == "enqueue_many" else widths_in_header(name)
        assert more == 0 or (more > 0 and "..." in numbers), name
        assert all(more % width == 0 for width in widths), name

    monkeypatch.setattr(RedisClient, "_exchange", checked)
    ALL_CALLS[scene].act(broker, prepared(redis, broker, ALL_CALLS[scene]))
    assert sent >= SCRIPTS.keys() & {scene}


@every_script
def test_after_the_naming_lines_no_key_or_argument_appears_by_number(name):
    strange, rest = naming_ends(name)

    assert strange == []
    assert not re.search(r"\bKEYS\b", rest)  # HKEYS is a command
    assert "ARGV" not in rest


@every_file
def test_keys_are_taken_from_q_target_or_home(name):
    """Their names may be made there: see _with_names() in scripts.py."""
    taken = re.findall(r"\b(\w+)\.(\w+)", code_of(name))
    others = {"ends", "flow", "picked", "plan", "share", "turns", "used"}  # tables with such a field that is no key

    assert {of for of, key in taken if key in QUEUE_KEYS} <= {"q", "target", "home", *others}


def test_what_is_no_key_is_set_by_a_script():
    """Nobody else would notice a name that is misspelt."""
    texts = [code_of(name) for name in FILES]
    lists = [found for text in texts for found in re.findall(r"((?:[\w.\[\]]+, )*q\.\w+) = ", text)]
    assigned = {name for names in lists for name in re.findall(r"\bq\.(\w+)", names)}

    taken = {name for text in texts for name in re.findall(r"\b(?:q|target|home)\.(\w+)", text)}
    assert taken - {"running"} == (assigned - {"running"}) | QUEUE_KEYS.keys()


def test_jobs_leave_a_processing_list_and_the_hash_of_runners_together():
    found = [path for path in files("**/*.lua") if re.search(r'"HDEL", (q\.)?running\b', path.read_text())]

    assert [path.name for path in found] == ["settle.lua"]


@every_script
def test_the_header_says_what_it_does_and_what_happens_when_it_is_sent_twice(name):
    header = header_of(name)

    assert header.startswith(f"-- {name}: ")
    assert ("Reads only." in header) == (name in QUERIES) == (name in READ_ONLY)
    assert "\n-- returns " in header
    assert ("\n-- sent twice: " in header) == (name not in READ_ONLY)


@every_file
def test_a_file_names_the_parts_that_it_uses_itself(name):
    used = names_used(name) - local_to(name) - constants_of(name)

    assert set(direct_parts(name)) <= PARTS.keys()
    assert set(direct_parts(name)) == {
        part for part in PARTS if part != name and used & (functions_of(part).keys() | constants_of(part))
    }


def test_no_two_parts_define_the_same_name():
    names = [each for part in PARTS for each in (*functions_of(part), *constants_of(part))]

    assert sorted(names) == sorted(set(names))


NULL_PARTS = {f"lib/{path.stem}": path.read_text() for path in scripts.LUA[0].glob("lib/no_*.lua")}


APPS = {"console": {"limits", "workflows"}, "workflows": {"limits"}}  # those whose scripts need the scripts of others


def of_folder(folder):
    """The files of the core or of an app, as they are named here."""
    return [f"lib/{path.stem}" if path.parent.name == "lib" else path.stem for path in folder.rglob("*.lua")]


@pytest.mark.parametrize("name", NULL_PARTS)
def test_null_parts_have_all_functions_of_an_app_that_others_call_without_it(name):
    app = name.removeprefix("lib/no_")
    (own,) = [folder for folder in scripts.LUA if folder.parent.name == app]
    functions = {function for part in of_folder(own) if part in PARTS for function in functions_of(part)}
    callers = [folder for folder in scripts.LUA if folder != own and app not in APPS.get(folder.parent.name, ())]

    called = {word for folder in callers for file in of_folder(folder) for word in names_used(file) - local_to(file)}
    assert set(re.findall(r"^local (\w+) =", NULL_PARTS[name], re.MULTILINE)) == functions & called


def test_the_readme_says_how_functions_of_apps_are_called():
    said = re.findall(r"`(\w+)(\(.*?\))`", section((scripts.LUA[0] / "README.md").read_text(), "## Parts of apps"))
    in_place = {name for part in NULL_PARTS.values() for name in re.findall(r"^local (\w+) =", part, re.MULTILINE)}
    defined = {name: text.partition("\n")[0] for part in PARTS for name, text in functions_of(part).items()}

    assert dict(said) == {name: defined[name] for name in in_place}


@pytest.mark.parametrize("name", [name for name in PARTS if name not in NULL_PARTS])
def test_a_part_is_used_by_some_script(name):
    assert header_of(name).startswith(f"-- {name.removeprefix('lib/')}: ")
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
    assert ('"TIME"' in code) == (name == "lib/prelude")


@every_script
def test_who_drains_a_full_server_begins_its_writes_with_one_that_is_allowed(name):
    drains = re.findall(r'redis\.call\("DEL", .*"scratch"\)', SCRIPTS[name].text)

    assert len(drains) == (name not in REFUSED | READ_ONLY)


@every_script
def test_it_has_a_test_module_and_a_scene(name):
    assert module_of(name).__doc__
    assert name in SCRIPT_CALLS


@every_script
def test_what_is_called_begins_with_what_it_uses_of_its_parts_and_nothing_else(name):
    text = re.sub(r'lazy\("\w+"\)\.\w+\(|\w+_functions\(\)\.', "(", without_names(SCRIPTS[name].text))
    code = re.sub(r"(?m)\s*--.*$", "", text)
    used = re.findall(r"(?<![.\w])(\w+)\(|\b([A-Z][A-Z_]+)\b", reach_of(name))
    parts = used_parts(name)

    assert re.sub(r'lazy\("\w+"\)\.', "", without_names(SCRIPTS[name].text)).endswith(FILES[name])
    for function in {function for part in parts for function in functions_of(part)}:
        first = re.search(rf"(?<![.\w]){function}\(", code)
        assert bool(first) == ((function, "") in used)
        assert not first or code[: first.start()].endswith("local function ")
    for constant in {constant for part in parts for constant in constants_of(part)}:
        first = re.search(rf"\b{constant}\b", code)
        assert first or ("", constant) not in used
        assert not first or re.search(r"local [A-Z_, ]*$", code[: first.start()])


@every_script
def test_functions_of_some_parts_are_created_when_one_is_first_called(name):
    text = SCRIPTS[name].text
    lazy = {part for part in used_parts(name) if "\n-- created when first called\n" in FILES[part]}
    created = set(re.findall(r"^local function (\w+)", text, re.MULTILINE))

    assert not created & {function for part in lazy for function in functions_of(part)}


def test_a_claim_creates_few_functions():
    created = set(re.findall(r"^local function (\w+)", SCRIPTS["claim"].text, re.MULTILINE))

    assert {"now_ms", "take_turns", "end_turns"} < created
    assert not created & {"read_rooms", "release_unique", "drop_oldest_outcomes", "read_header", "rank"}


def test_no_file_is_read_before_its_script_is_called():
    program = """
import sys
opened = []
sys.addaudithook(lambda event, found: opened.append(str(found[0])) if event == "open" else None)
import django, django_rtq.core.broker.scripts as scripts
from django.conf import settings
settings.configure(INSTALLED_APPS=["django_rtq"])
django.setup()
import django_rtq.console.reading.readers, django_rtq.core.tasks
before = [name for name in opened if name.endswith(".lua")]
scripts.SCRIPTS["roll_up"].sha, scripts.SCRIPTS["roll_up"].sha, scripts.SCRIPTS["record_step"].sha
print(before, [name.rpartition("/lua/")[2] for name in opened if name.endswith(".lua")])
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)

    assert done.stdout == "[] ['roll_up.lua', 'lib/prelude.lua', 'record_step.lua']\n"


def test_a_worker_reads_all_files_at_its_start_and_puts_scripts_together_when_it_calls_them():
    program = """
import pathlib, sys, django
from django.conf import settings
settings.configure(INSTALLED_APPS=["django_rtq"], RTQ={"REDIS": "redis://localhost:1/0"})
django.setup()
from django_rtq.core.broker.worker_broker import WorkerBroker
from django_rtq.core.broker import scripts
from django_rtq.core.broker.redis.commands import SCRIPTS_BY_SHA
from django_rtq.core.conf.config import get_config
WorkerBroker(get_config())
print(scripts._read.cache_info().currsize)
WorkerBroker(get_config(), role="supervisor")
print(len(SCRIPTS_BY_SHA))
scripts._PACKAGE = pathlib.Path("a later version")
scripts.LUA[:] = [scripts._PACKAGE]
print(all(script.sha for script in scripts.SCRIPTS.values()))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)

    assert done.stdout == "0\n0\nTrue\n"


def test_a_call_names_the_tag_of_its_queue_and_the_processing_list_if_the_script_needs_it():
    keys = Keys("rtq").of("mail")

    call = SCRIPTS["settle"].call(keys, (10, "id"), worker="w1")
    assert call == (b"EVALSHA", SCRIPTS["settle"].sha, 2, b"{rtq:mail}:", keys.running("w1"), 10, "id")
    assert SCRIPTS["find_job"].call(keys, ("id",))[2:] == (1, b"{rtq:mail}:", "id")


def test_a_claim_of_several_queues_names_the_tag_of_each():
    keys = Keys("rtq")
    command = SCRIPTS["claim"].call_many([keys.of("high"), keys.of("low")], ("w1", 1, "1"))

    assert command[2:] == (2, b"{rtq:high}:", b"{rtq:low}:", "w1", 1, "1")


def replaced_package(monkeypatch, tmp_path, version):
    """Let pip replace the package."""
    package = tmp_path / "__init__.py"
    package.write_text(f'__version__ = "{version}"\n')
    monkeypatch.setattr(scripts, "_PACKAGE", package)


def test_a_process_sends_no_scripts_of_a_version_that_was_installed_later(monkeypatch, tmp_path):
    replaced_package(monkeypatch, tmp_path, "9.9")
    scripts._read.cache_clear()

    with pytest.raises(BrokerRefused, match=r"upgraded from .* to 9\.9 while this process was running. Restart it"):
        _ = scripts.Script("enqueue", "").sha


def test_the_same_version_may_be_installed_again(monkeypatch, tmp_path):
    replaced_package(monkeypatch, tmp_path, django_rtq.__version__)

    assert scripts.Script("enqueue", "").sha == SCRIPTS["enqueue"].sha


def test_a_script_that_the_later_version_does_not_have():
    with pytest.raises(BrokerRefused, match="Was django_rtq upgraded"):
        _ = scripts.Script("enqueue_of_a_later_version", "").sha

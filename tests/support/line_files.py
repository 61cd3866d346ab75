"""Reading files to which other processes append lines."""

import json


def whole_lines(path):
    """All lines of the file, in order; none if there is no file. Leaves out the last one while it is being written."""
    return path.read_text().rpartition("\n")[0].splitlines() if path.exists() else []


def json_lines(path):
    """The same, each line decoded from JSON."""
    return list(map(json.loads, whole_lines(path)))

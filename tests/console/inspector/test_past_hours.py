"""What is kept of the hours that are over, and for how long."""

from django_rtq.console.inspector.metrics.past_hours import PastHours


class Server:
    """Answers for queues with these marks."""

    def __init__(self, *marks):
        self.marks = list(marks)
        self.asked = []

    def ask(self, known):
        self.asked.append(list(known))
        return ["also"], [[(mark, mark == before)] for mark, before in zip(self.marks, known, strict=True)]

    def read(self, hours, key="key"):
        """Reads as the list of tasks does. The sum: the marks; no reply that leaves out the hours before is added."""
        queues = [f"q{number}" for number in range(len(self.marks))]
        return hours.read(key, queues, self.ask, add_up)


def add_up(replies):
    assert not any(is_left_out for [(_, is_left_out)] in replies)
    return [mark for [(mark, _)] in replies]


def test_redis_is_told_what_is_known():
    server, hours = Server(b"7 1", b"7 2"), PastHours(most=2)

    found = [server.read(hours) for _ in range(2)]

    assert server.asked == [[b"", b""], [b"7 1", b"7 2"]]
    assert [(also, past) for also, _, past in found] == [(["also"], [b"7 1", b"7 2"])] * 2


def test_if_some_queues_have_changed_all_are_read():
    server, hours = Server(b"7 1", b"7 2"), PastHours(most=2)
    server.read(hours)
    server.marks[1] = b"7 3"

    _, replies, past = server.read(hours)

    assert server.asked[1:] == [[b"7 1", b"7 2"], [b"", b""]]
    assert (past, replies) == ([b"7 1", b"7 3"], [[(b"7 1", False)], [(b"7 3", False)]])


def test_if_all_queues_have_changed_the_reply_has_all():
    server, hours = Server(b"7 1", b"7 2"), PastHours(most=2)
    server.read(hours)
    server.marks = [b"8 1", b"8 2"]

    assert server.read(hours)[2] == [b"8 1", b"8 2"]
    assert len(server.asked) == 2


def test_of_other_queues_nothing_is_known():
    server, hours = Server(b"7 1"), PastHours(most=2)
    server.read(hours)
    server.marks.append(b"7 2")

    assert server.read(hours)[2] == [b"7 1", b"7 2"]
    assert server.asked[1:] == [[b"", b""]]


def test_without_queues():
    server, hours = Server(), PastHours(most=2)
    assert [server.read(hours)[1:] for _ in range(2)] == [([], [])] * 2


def test_only_the_latest_are_kept():
    server, hours = Server(b"7 1"), PastHours(most=2)
    for key in "abca":
        server.read(hours, key)

    assert server.asked == [[b""]] * 4

    server.read(hours, "c")
    server.read(hours, "a")
    assert server.asked[4:] == [[b"7 1"]] * 2

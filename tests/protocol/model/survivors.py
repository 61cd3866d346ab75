"""Mistakes that rules make and that are not tried, most of them because nothing can find them, by the reason."""

REASONS: dict[str, tuple[str, ...]] = {
    "A loop does not end: everybody would notice, and these tests would wait.": (
        "lib/virtual_turns sift: [heap[1] -> true]",
        "lib/virtual_turns take_virtual_turns: [late -> true]",
        "lib/virtual_turns sift: [heap[i] = c -> nothing]",
        'purge find_lane: [redis.call("EXISTS", q.lane .. band .. ":" .. client) == 1 -> true]',
    ),
    "A limit of size: one more or one less is as good.": (
        "append_log lines_that_fit: bytes + #kept[first - 1][ <= -> < ]MAX_BYTES",
        "forget_workflow : now[ < -> <= ]latest",
        'lib/search_steps match_outcomes: [read = read + #(outcome or "") -> nothing]',
        "lib/virtual_turns take_virtual_turns: charge_of(share, q.now)[ >= -> > ]share.charged + 1",
        "lib/virtual_turns charge: tonumber(turn)[ < -> <= ]tonumber(NEWCOMERS)",
        'lib/waiting leave_out_cancelled: redis.call("HLEN", q.cancelled_in_lane)[ <= -> < ]MOST_COUNTED',
    ),
    "A number of a turn is left out, which nobody compares.": ("lib/lanes index_lane: [not turn -> true]",),
    "The text of a queue has no weight.": (
        'set_limits set_source: [field == "clients" or string.find(field, "client:", 1, true) == 1 -> true]',
    ),
    "tests/core/broker/test_clients_aside.py finds it, which is not named after a script.": (
        "lib/turns first_clients: [n = q.aside and n + q.aside.n or n -> nothing]",
        "lib/virtual_turns open_turns: [leave_aside(q, found, 2) -> nothing]",
    ),
    "A list of one entry has no order.": ('lib/workflow_steps send_signal: ["LPUSH" -> "RPUSH"]',),
    "It reads or computes more, with the same result.": (
        "lib/member_ends find_step: [number >= step.first and number < step.first + step.size -> false]",
        "lib/member_ends find_step: number[ >= -> > ]step.first",
        'advance_workflow : [note ~= "done" -> true]',
        'settle : [state ~= "succeeded" -> true]',
        "settle : [q.has_limits -> true]",
        'settle : [q.runner = redis.call("EXISTS", q.runners) == 1 -> nothing]',
        "claim_lane : [q.has_limits -> true]",
        "enqueue_many : [rooms = false -> nothing]",
        "claim_lane : [q.has_waiting_since -> true]",
        "claim_lane read_ids: [q.has_cancelled_in_lane or q.pauses -> true]",
        'lib/steps forget_steps: [redis.call("EXISTS", q.step_jobs) == 0 -> false]',
        "lib/steps forget_steps: [entry -> true]",
        "lib/rates use_rates: [not next(rates) -> false]",
        "lib/settle finish_held: [q.has_limits ~= false -> true]",
        "lib/settle leave: [q.runner ~= false -> true]",
        "lib/turns first_clients: [not q.has_limits -> false]",
        "lib/used_times charge_of: [used.running == 0 -> false]",
        "lib/virtual_turns place_clients: [q.has_times -> true]",
        'renew find_asked: [redis.call("EXISTS", q.cancel_requests) == 0 -> false]',
        "queries/queue_overview : [queued > 0 and -> nothing]oldest_startable(q, now)",
        "promote due_by_turns: [#ids >= wanted -> false]",
        "promote due_by_turns: #ids[ >= -> > ]wanted",
        "renew renew_leases: [ends ~= renewed_until -> true]",
        "renew renew_leases: [renewed_until = ends -> nothing]",
        'set_limits : [stamp == "" or #entries > 2 -> true]',
        "set_limits : #entries[ > -> >= ]2",
    ),
    "Two clients have not the same name.": (
        "lib/virtual_turns is_before: (string.byte(one, i) or -1)[ < -> <= ](string.byte(two, i) or -1)",
    ),
    "It marks them again, which changes nothing.": (
        'lib/virtual_turns mark_newcomers: tonumber(redis.call("GET", q.turn) or 0)[ > -> >= ]tonumber(NEWCOMERS)',
    ),
    "A wait ends in this very millisecond, or has ended some before.": (
        "lib/steps suspend: math.max([0, -> nothing]due - now)",
        "lib/steps begin_wait: former.due[ <= -> < ]now",
        "send_event : wait.due[ <= -> < ]now",
    ),
    "No job has waited since 1970.": ("run_now : tonumber(due)[ >= -> > ]tonumber(lowest_held())",),
    "Clients are marked as newcomers before any has a weight, and their order stays.": (
        "set_limits set_source: [after == 1 -> true]",
    ),
    "The time is read again, and is the same but by chance.": ("reclaim : [q.now = now -> nothing]",),
    "Only a torn log leaves it like that: see test_torn_log.py.": (
        "lib/blocking unblock: [not bands -> false]",
        "lib/used_times count_ends: [client -> true]",
        "promote due_by_turns: [leaving[#leaving + 1] = id -> nothing]",
        "promote pick: [record -> true]",
    ),
    "It writes what is there.": ("resume : [is_paused -> true]",),
}
SURVIVORS = {name: reason for reason, names in REASONS.items() for name in names}

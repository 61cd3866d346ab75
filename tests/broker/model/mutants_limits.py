"""Mutants of the limits of queues and clients."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

WAKES = 'redis.call("ZADD", q.work_signal, "0", "work")'
ENDED = "count_ended(q, entries)"

LIMIT_MUTANTS = (
    # what a client may start
    Mutant("one_more_than_the_limit", "most - tonumber(running or 0) or", "most - tonumber(running or 0) + 1 or"),
    Mutant("one_more_in_a_turn", "turns.taken[c] >= rooms[c]", "turns.taken[c] > rooms[c]"),
    Mutant("paused_clients_start", "entries[2 * i + 1] and 0 or", ""),
    Mutant("clients_have_no_limit_of_their_own", "entries[2 * i], entries[1]", "nil, entries[1]"),
    Mutant("clients_have_no_default", "entries[2 * i], entries[1]", "entries[2 * i], nil"),
    Mutant("queue_without_limit", "room <= 0 or has(q, q.paused)", "has(q, q.paused)"),
    Mutant("queue_over_its_limit", "math.max(0, claim.wanted - room)", "0"),
    Mutant("queue_at_its_limit_keeps_others_waiting", "claim.wanted = claim.wanted + others end", "end"),
    # who waits until it may
    Mutant("bands_of_the_blocked_not_noted", 'redis.call("HSET", q.blocked, client,', "string.len("),
    Mutant("blocked_take_turns", 'redis.call("ZADD", q.ring .. band, "inf", client)', NOTHING),
    Mutant("blocked_are_looked_at", '"(inf"', '"+inf"'),
    Mutant("blocked_go_to_the_end", "if not turns.blocked[c] then list", "if true then list"),
    Mutant("band_of_the_blocked_stays", "#first_clients(q, band, 1) == 0", 'redis.call("EXISTS", ring) == 0'),
    Mutant("blocked_wake_workers", 'if turn == "inf" then return end', NOTHING),
    Mutant("blocked_get_turns_back", ' and redis.call("ZSCORE", q.ring .. band, client) ~= "inf"', ""),
    Mutant("blocked_go_on_without_room", " or read_rooms(q, { client })[1] <= 0", ""),
    Mutant("blocked_stay_noted", 'redis.call("HDEL", q.blocked, client)', NOTHING),
    Mutant("blocked_go_on_without_band", '        redis.call("ZADD", q.bands, rank(band), band)\n', ""),
    Mutant("blocked_get_no_turn", 'redis.call("ZADD", ring, redis.call("INCR", q.turn), client)', NOTHING),
    Mutant("blocked_go_on_silently", f"        {WAKES}\n      else", "      else"),
    Mutant("blocked_without_jobs_stay", 'redis.call("ZREM", ring, client)', NOTHING),
    Mutant("who_is_not_blocked_loses_its_turn", 'if redis.call("ZSCORE", ring, client) == "inf" then', "if true then"),
    # the counts
    Mutant("starts_not_counted", "if #started > 0 then count_started(q, started, h / 2) end", NOTHING),
    Mutant("starts_not_counted_for_clients", 'add_running(q, "client:" .. client, owners[client])', NOTHING),
    Mutant("starts_not_counted_for_queue", 'add_running(q, "queue", total)', NOTHING),
    Mutant("ends_not_counted_for_queue", 'add_running(q, "queue", -total)', NOTHING),
    Mutant("ends_not_counted_for_clients", 'add_running(q, "client:" .. client, -owners[client])', NOTHING),
    Mutant("counts_of_none_stay", '<= 0 then redis.call("HDEL", q.running_counts, name) end', "<= 0 then return end"),
    Mutant("owners_not_written", 'held[h] = held[h] .. " " .. owners[i]', NOTHING),
    Mutant("ends_in_finish_not_counted", "q.has_limits ~= false", "q.has_limits", ("finish",)),
    *(
        Mutant(f"ends_in_{verb}_not_counted", ENDED + "\nreturn", "return", (verb,))
        for verb in ("retry", "bury", "release")
    ),
    Mutant("ends_in_reclaim_not_counted", ENDED + "\n  return left", "return left"),
    Mutant(
        "ends_wake_nobody", f'if redis.call("EXISTS", q.bands) == 1 then {WAKES} end\nend', "\nend", ("finish", "claim")
    ),
    Mutant("a_place_lets_nobody_go_on", "-owners[client])\n    unblock(q, client)", "-owners[client])"),
    # changes, and the audit
    Mutant("forget_overlooks_limits", 'redis.call("EXISTS", q.limit_sources, q.blocked) > 0', "false", ("forget",)),
    Mutant("first_limit_counts_nothing", "== 1 then recount(q) else", "== 2 then recount(q) else", ("set_limits",)),
    Mutant("counts_outlast_limits", 'recount(q) else redis.call("DEL", q.running_counts) end', "recount(q) end"),
    Mutant("limits_outlast_their_end", 'redis.call("HDEL", key, field)', NOTHING),
    Mutant("settings_win", 'sources[1] .. " " .. sources[2]', 'sources[2] .. " " .. sources[1]'),
    Mutant("other_values_are_lost", 'sources[1] .. " " .. sources[2]', "sources[1]"),
    Mutant("old_values_stay", 'text = string.gsub(text, " " .. name .. "=%S*", "")', NOTHING, ("set_limits",)),
    Mutant("settings_are_lost", "sources[1] or sources[2]", "sources[1]"),
    Mutant(
        "new_limits_wake_nobody",
        f'if redis.call("EXISTS", q.bands) == 1 then {WAKES} end\nreturn',
        "return",
        ("set_limits",),
    ),
    Mutant("check_forgets", "do unblock(q, client) end", "do end", ("check_blocked",)),
    Mutant("audit_counts_nothing", "recount(q) end", "end", ("repair_lanes",)),
    Mutant("audit_adds_to_the_counts", 'redis.call("DEL", q.running_counts)\n  if total', "if total"),
    Mutant("audit_notes_no_bands", "      block(q, band, client)\n", "", ("repair_lanes",)),
    Mutant("audit_lets_nobody_go_on", "      unblock(q, client)\n", "", ("repair_lanes",)),
    Mutant("audit_puts_bands_of_the_blocked_back", 'if turn == "inf" then\n      block', "if false then\n      block"),
    Mutant("entries_without_owner_stay", 'held[i + 1] .. " " .. client)', "held[i + 1])"),
)

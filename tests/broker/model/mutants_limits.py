"""Mutants of the limits of queues and clients."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

WAKES = 'redis.call("ZADD", q.work_signal, "0", "work")'
ENDED = "count_ended(q, entries)"

LIMIT_MUTANTS = (
    # what a client may start
    Mutant("one_more_than_the_limit", "caps[text] - (running or 0)", "caps[text] - (running or 0) + 1"),
    Mutant("one_more_in_a_turn", "turns.taken[c] >= rooms[c]", "turns.taken[c] > rooms[c]"),
    Mutant("paused_clients_start", "are_paused[i] and 0 or", ""),
    Mutant("clients_have_no_limit_of_their_own", "values_of(own, of.clients)", "default"),
    Mutant("clients_have_no_default", "values_of(own, of.clients) or default", "values_of(own) or ''"),
    Mutant("queue_without_limit", "room <= 0 or (has(q, q.paused)", "(has(q, q.paused)"),
    Mutant("queue_over_its_limit", "math.max(0, claim.wanted - room)", "0"),
    Mutant("queue_at_its_limit_keeps_others_waiting", "claim.wanted = claim.wanted + others end", "end"),
    # who waits until it may
    Mutant("bands_of_the_blocked_not_noted", 'redis.call("HSET", q.blocked, client,', "string.len("),
    Mutant("blocked_take_turns", 'redis.call("ZADD", q.ring .. band, "inf", client)', NOTHING),
    Mutant("blocked_are_looked_at", '"(inf", "LIMIT", "0", n', '"+inf", "LIMIT", "0", n'),
    Mutant("blocked_go_to_the_end", "turns.blocked and turns.blocked[c] and {} or", ""),
    Mutant("band_of_the_blocked_stays", "#first_clients(q, band, 1) == 0", 'redis.call("EXISTS", ring) == 0'),
    Mutant("blocked_wake_workers", 'if turn == "inf" then return end', NOTHING),
    Mutant("blocked_get_turns_back", ' and redis.call("ZSCORE", q.ring .. band, client) ~= "inf"', ""),
    Mutant("blocked_go_on_without_room", "if rooms[1] <= 0 then return end", NOTHING),
    Mutant("blocked_stay_noted", 'redis.call("HDEL", q.blocked, client)', NOTHING),
    Mutant("blocked_go_on_without_band", '        redis.call("ZADD", q.bands, rank(band), band)\n', ""),
    Mutant("blocked_get_no_turn", 'redis.call("ZADD", ring, redis.call("INCR", q.turn), client)', NOTHING),
    Mutant("blocked_go_on_silently", f"        {WAKES}\n      else", "      else"),
    Mutant("blocked_without_jobs_stay", 'redis.call("ZREM", ring, client)', NOTHING),
    Mutant("who_is_not_blocked_loses_its_turn", 'if redis.call("ZSCORE", ring, client) == "inf" then', "if true then"),
    # who is woken up for nothing, and who is not woken up
    Mutant("full_queues_wake_workers", "if queue_room(q) <= 0 and not q.rates.queue then return true end", NOTHING),
    Mutant("full_clients_wake_workers", "if #clients > FEW then", "if true then"),
    Mutant("one_of_several_is_full", "if room > 0 or q.rates", "if room <= 0 then return true end\n    if q.rates"),
    Mutant("lower_bands_wake_nobody", "if #bands > 1 then return false end", NOTHING),
    Mutant("rates_wake_nobody", ' or q.rates["client:" .. clients[i]] then', " then"),
    Mutant("a_rate_of_the_queue_wakes_nobody", "<= 0 and not q.rates.queue then return true", "<= 0 then return true"),
    Mutant("new_answers_wake_nobody", 'if #changed > 0 and redis.call("EXISTS", q.bands) == 1 then', "if false then"),
    # the counts
    Mutant("starts_not_counted", "    add_running(q, started, h / 2, 1)\n", NOTHING),
    Mutant("jobs_of_clients_not_counted", '"client:" .. client, owners[client]\n', '"client:" .. client, 0\n'),
    Mutant("jobs_of_the_queue_not_counted", '{ "queue" }, { total }', '{ "queue" }, { 0 }'),
    Mutant("ends_not_counted", "sign * numbers[i]", "math.max(0, sign) * numbers[i]"),
    Mutant("counts_of_none_stay", "if n > 0 then counts", "if true then counts"),
    Mutant("owners_not_written", 'held[h] = held[h] .. " " .. owners[i]', NOTHING),
    Mutant("ends_in_finish_not_counted", "q.has_limits ~= false", "q.has_limits", ("finish",)),
    *(Mutant(f"ends_in_{verb}_not_counted", ENDED + "\nreturn", "return", (verb,)) for verb in ("retry", "bury")),
    Mutant("ends_in_release_not_counted", "count_ended(q, entries, true)", NOTHING),
    Mutant("ends_in_reclaim_not_counted", ENDED + "\n  return left", "return left"),
    Mutant(
        "ends_wake_nobody", f'if redis.call("EXISTS", q.bands) == 1 then {WAKES} end\nend', "\nend", ("finish", "claim")
    ),
    Mutant("a_place_lets_nobody_go_on", "if bands then unblock(q, owners[i]) end", NOTHING),
    # changes, and the audit
    Mutant("forget_overlooks_limits", 'redis.call("EXISTS", q.limit_sources, q.blocked) > 0', "false", ("forget",)),
    Mutant(
        "first_limit_counts_nothing",
        "elseif not (is_counted and changes.had_limits) then",
        "elseif false then",
        ("set_limits",),
    ),
    # what a function said
    Mutant(
        "a_function_has_no_say", '"limits_of:" .. field, "settings:" .. field)', '"limits_of", "settings:" .. field)'
    ),
    Mutant(
        "the_settings_win",
        '"limits_of:" .. field, "settings:" .. field)',
        '"settings:" .. field, "limits_of:" .. field)',
    ),
    Mutant("the_function_wins", '"run:" .. field, "limits_of:" .. field,', '"limits_of:" .. field, "run:" .. field,'),
    Mutant(
        "a_first_limit_of_a_function_counts_nothing",
        "elseif not (is_counted and changes.had_limits) then",
        "elseif not is_counted then",
    ),
    Mutant(
        "nobody_goes_on_when_a_function_says_so",
        "for _, client in ipairs(changed) do unblock(q, client) end\n",
        NOTHING,
    ),
    Mutant(
        "a_met_client_is_not_noted",
        '"ZADD", q.asked_limits, now, entries[i])',
        '"ZADD", q.asked_limits, "XX", now, entries[i])',
    ),
    Mutant("a_client_that_waits_is_forgotten", " or client_waiting(q, client) > 0", NOTHING),
    Mutant(
        "a_client_that_runs_jobs_is_forgotten",
        'redis.call("HEXISTS", q.running_counts, "client:" .. client) == 1 or',
        NOTHING,
    ),
    Mutant("limits_of_the_forgotten_stay", '    keep(changes, client, "")\n', NOTHING),
    Mutant("the_forgotten_are_looked_at_again", '    redis.call("ZREM", q.asked_limits, client)\n', NOTHING),
    Mutant(
        "clients_with_jobs_stay_first",
        '    redis.call("ZADD", q.asked_limits, now, client) -- look again later\n',
        NOTHING,
    ),
    Mutant("forgotten_too_early", "now - idle_ms, ", "now - idle_ms + 1, "),
    Mutant("fewer_are_forgotten", "FORGOTTEN + #entries / 2", "FORGOTTEN"),
    Mutant(
        "counts_outlast_limits", 'redis.call("DEL", q.running_counts, q.rate_times', 'redis.call("DEL", q.rate_times'
    ),
    Mutant("limits_outlast_their_end", 'redis.call("HDEL", key, field)', NOTHING),
    Mutant("settings_win", "for i = 1, 3 do texts", "for i = 3, 1, -1 do texts"),
    Mutant("other_values_are_lost", 'text, paused = table.concat(texts, " ")', 'text, paused = texts[1] or ""'),
    Mutant("old_values_stay", 'text = string.gsub(text, " " .. name .. "=%S*", "")', NOTHING, ("set_limits",)),
    Mutant("settings_are_lost", "for i = 1, 3 do texts", "for i = 1, 2 do texts"),
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
    # rates
    Mutant("rates_are_ignored", "if not starts then return end", "do return end"),
    Mutant("burst_is_ignored", 'tonumber(string.match(values, " burst=(%S+)")) or', ""),
    Mutant("default_burst_is_one", "math.max(1, math.floor(100 * starts / period))", "1"),
    Mutant(
        "default_burst_may_be_none",
        "math.max(1, math.floor(100 * starts / period))",
        "math.floor(100 * starts / period)",
    ),
    Mutant("a_lower_rate_holds_on", "math.min(arrival, latest)", "arrival"),
    Mutant(
        "a_lower_rate_is_cut_again_and_again",
        'if rate.is_cut then redis.call("ZADD"',
        'if false then redis.call("ZADD"',
    ),
    Mutant("one_more_start_than_the_rate_allows", "/ rate.interval + 1e-6)", "/ rate.interval + 1)"),
    Mutant("part_of_a_start_is_one", "/ rate.interval + 1e-6)", "/ rate.interval + 0.2)"),
    Mutant("rounded_starts_are_missing", "/ rate.interval + 1e-6)", "/ rate.interval - 1e-6)"),
    Mutant("next_start_after_the_burst", "(rate.burst - 1) * rate.interval", "0"),
    Mutant("next_start_is_early", "math.ceil(rate.arrival - (rate.burst", "math.floor(rate.arrival - (rate.burst"),
    Mutant("fast_rates_wake_for_each_start", "if rate.interval < EARLIEST_MS then", "if false then"),
    Mutant("slow_rates_wait_longer", "if rate.interval < EARLIEST_MS then", "if true then"),
    Mutant(
        "fast_rates_wait_beyond_their_burst",
        "math.min(q.now + EARLIEST_MS, math.ceil(rate.arrival))",
        "q.now + EARLIEST_MS",
    ),
    Mutant("next_starts_are_not_noted", 'redis.call("ZADD", q.next_starts, moment, member)', NOTHING),
    Mutant("next_starts_wake_no_scheduler", "if moment < tonumber(first or math.huge) then", "if false then"),
    Mutant("next_starts_wake_at_every_turn", "if moment < tonumber(first or math.huge) then", "if true then"),
    Mutant("past_times_stay", 'redis.call("ZREM", q.rate_times, unpack(past))', NOTHING),
    Mutant("each_claim_starts_one", "sign * n * rate.interval", "sign * rate.interval"),
    Mutant("starts_of_clients_not_written", 'do move("client:" .. client, owners[client]) end', "do end"),
    Mutant("starts_of_the_queue_not_written", 'move("queue", total)', NOTHING),
    Mutant("starts_are_not_given_back", "use_rates(q, owners, total, -1)", NOTHING),
    Mutant("starts_are_given_back_by_all", "if are_unrun then", "if true then"),
    Mutant("a_place_is_a_start", "rooms[i] = math.min(rooms[i], rate.room)", NOTHING),
    Mutant("who_waits_for_a_place_waits_for_its_rate", "if rate and rooms[i] > 0 then", "if rate then"),
    Mutant("queue_without_rate", "return math.min(room, rate.room),", "return room,"),
    Mutant("queue_waits_without_a_time", 'if moment then wait_for_rate(q, "queue", moment) end', NOTHING),
    Mutant("clients_wait_without_a_time", "next(turns.blocked) then wait_for_rates", "false then wait_for_rates"),
    Mutant(
        "after_a_place_no_time_is_noted",
        'if moments[1] then wait_for_rate(q, "client:" .. client, moments[1]) end',
        NOTHING,
    ),
    Mutant("who_went_on_is_due", 'redis.call("ZREM", q.next_starts, "client:" .. client)', NOTHING),
    Mutant("who_was_due_stays_due", 'redis.call("ZREM", q.next_starts, unpack(due))', NOTHING),
    Mutant("due_clients_stay_blocked", "if client then unblock(q, client) end", NOTHING),
    Mutant("a_due_queue_wakes_nobody", 'if not client and redis.call("EXISTS", q.bands) == 1 then', "if false then"),
    Mutant(
        "a_due_queue_without_work_wakes_workers",
        'if not client and redis.call("EXISTS", q.bands) == 1 then',
        "if not client then",
    ),
    Mutant("claims_let_nobody_go_on", "if room > 0 then resume_due(q, 10) end", NOTHING),
    Mutant("claims_of_no_room_let_clients_go_on", "if room > 0 then resume_due(q, 10) end", "resume_due(q, 10)"),
    Mutant(
        "claims_overlook_a_new_band",
        'if q.has_limits then band = redis.call("ZREVRANGE", q.bands, "0", "0")[1] end',
        NOTHING,
    ),
    Mutant(
        "promote_lets_nobody_go_on",
        'redis.call("EXISTS", q.rate_times, q.next_starts, q.paused) > 0',
        "false",
        ("promote",),
    ),
    Mutant(
        "promote_forgets_who_is_next",
        "math.min(resume_due(q, limit) or math.huge,",
        "math.min(resume_due(q, limit) and math.huge or math.huge,",
    ),
    Mutant("promote_forgets_the_next_job", "or math.huge, next_due or math.huge)", "or math.huge, math.huge)"),
    Mutant("rates_outlast_limits", ", q.rate_times, q.next_starts)\n  elseif", ")\n  elseif", ("set_limits",)),
)

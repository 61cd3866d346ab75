"""Mutants of the limits of waiting jobs."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

LIMITED = 'redis.call("EXISTS", q.waiting_limits) == 1'

WAITING_MUTANTS = (
    # who waits
    Mutant("the_dead_wait", ' - redis.call("ZCARD", q.dead) - running', " - running"),
    Mutant("what_runs_waits", ' - redis.call("ZCARD", q.dead) - running', ' - redis.call("ZCARD", q.dead)'),
    Mutant(
        "delayed_do_not_wait",
        'redis.call("ZCARD", q.scheduled_by_client .. ":" .. client) + count_lanes_of',
        "count_lanes_of",
    ),
    Mutant("blocked_do_not_wait", "if not known[band] then bands", "if false then bands", ("enqueue_many",)),
    Mutant("a_band_counts_twice", "if not known[band] then bands", "if true then bands", ("enqueue_many",)),
    # cancelled jobs
    Mutant("cancelled_jobs_fill_a_client", "if seems_full and not rooms.has_drops then", "if false then"),
    Mutant("cancelled_jobs_of_others_make_room", '"^[^:]*:(.*)$") == client then room', '"^[^:]*:(.*)$") then room'),
    Mutant("cancelled_ids_stay_in_front", 'redis.call("HEXISTS", q.jobs, first) == 0 do', "false do"),
    Mutant("trimmed_ids_are_remembered", 'redis.call("HDEL", q.cancelled_in_lane, first)', NOTHING),
    Mutant("a_lane_waits_since_its_trimmed_job", "if first and trimmed > 0 then", "if false then"),
    Mutant(
        "who_cancels_all_stays_in_the_ring",
        "if not first then leave_ring(q, lane) end\n  if first and trimmed",
        "if first and trimmed",
    ),
    # what fits
    Mutant("one_more_of_a_client_waits", "of_client.waiting >= of_client.most", "of_client.waiting > of_client.most"),
    Mutant("one_more_of_a_queue_waits", "of_queue.waiting >= of_queue.most", "of_queue.waiting > of_queue.most"),
    Mutant(
        "jobs_of_a_call_have_one_place",
        "of_client.waiting + 1, of_queue.waiting + 1",
        "of_client.waiting, of_queue.waiting + 1",
    ),
    Mutant(
        "clients_of_a_call_have_one_place",
        "of_client.waiting + 1, of_queue.waiting + 1",
        "of_client.waiting + 1, of_queue.waiting",
    ),
    Mutant(
        "own_limit_of_waiting_ignored", 'tonumber(found[1] or found[2] or "")', 'tonumber(found[2] or found[1] or "")'
    ),
    Mutant("no_default_of_waiting", 'tonumber(found[1] or found[2] or "")', 'tonumber(found[1] or "")'),
    # one job, and many
    Mutant("one_job_ignores_limits", f'if {LIMITED} then return "limited" end', NOTHING),
    Mutant("many_jobs_ignore_limits", f"local rooms = {LIMITED} and {{}}", "local rooms = false", ("enqueue_many",)),
    Mutant("a_known_job_is_refused", "rooms and not known[id] and take_place", "rooms and take_place"),
    Mutant("a_refused_job_is_stored", "if not known[id] and not full then", "if not known[id] then"),
    Mutant("some_of_all_or_none", "if together and plan.is_full then", "if false then"),
    Mutant("none_said_to_be_stored", 'if answer == "ok" then answers[i] = "full" end', NOTHING),
    # unique jobs
    Mutant("unique_jobs_ignore_limits", "  if full then return full end\n", NOTHING, ("enqueue_unique",)),
    Mutant("duplicates_are_refused", "rooms and is_new(q, job, first, successor) and find", "rooms and find"),
    Mutant(
        "a_second_run_needs_no_place",
        'not first or job.conflict == "rerun" and not successor and find_runner(q, first)',
        "not first",
    ),
    Mutant("each_second_run_needs_a_place", "and not successor and find_runner(q, first)", "and find_runner(q, first)"),
    Mutant(
        "a_second_before_the_first_needs_a_place", "and not successor and find_runner(q, first)", "and not successor"
    ),
    Mutant(
        "some_unique_of_all_or_none",
        "  if refused then return refused end\n",
        NOTHING,
    ),
    Mutant("preview_overlooks_ids", 'seen[job.id] and "exists" or is_known', "is_known"),
    Mutant("preview_knows_refused_jobs", "if not (answer or full) then", "if not answer then"),
    Mutant("preview_overlooks_digests", "(seen[job.digest] or not is_new", "(not is_new"),
    Mutant("preview_overlooks_owners", "or not is_new(q, job, first, successor))", ")"),
    Mutant("preview_overlooks_known_ids", 'is_known(q, job.id, is_recent(job.id, now)) and "exists"', "false"),
    # jobs that make room
    Mutant(
        "the_newest_is_dropped", 'redis.call("ZRANGE", q.lanes, 0, 0)[1]', 'redis.call("ZRANGE", q.lanes, -1, -1)[1]'
    ),
    Mutant("another_client_makes_room", "if not client then return redis", "if true then return redis"),
    Mutant("the_youngest_lane_makes_room", "if score < since then", "if score ~= math.huge then"),
    Mutant(
        "jobs_put_in_front_make_room",
        "if first and waiting_since(q, last, now) <",
        "if false and waiting_since(q, last, now) <",
    ),
    Mutant("the_last_makes_room", "waiting_since(q, last, now) < waiting_since(q, first, now)", "last ~= first"),
    Mutant("the_wrong_end_is_removed", 'is_last and "RPOP" or "LPOP"', '"LPOP"'),
    Mutant(
        "dropped_without_an_outcome",
        "store_outcomes(q, { id, drops.keep_ms, with_task(drops.outcome, record) }, { 1 }, drops.most, now)",
        NOTHING,
    ),
    Mutant("dropped_and_kept", "  delete_jobs(q, { id })\n  count", "  count"),
    Mutant("drops_are_not_counted", '  count(q.stats, now, "dropped", 1)\n', NOTHING),
    Mutant("drops_are_not_told", "  drops.ids[#drops.ids + 1] = id\n", NOTHING),
    Mutant("a_place_of_the_queue_is_lost", "rooms.queue.waiting = rooms.queue.waiting - 1", NOTHING),
    Mutant("a_place_of_the_client_is_lost", "of_client.waiting = of_client.waiting - 1", "of_client = nil"),
    Mutant(
        "a_cancelled_id_makes_room_in_the_queue",
        "  local record = id and redis",
        "  rooms.queue.waiting = rooms.queue.waiting - 1\n  local record = id and redis",
    ),
    Mutant(
        "cancelled_ids_are_remembered",
        '    redis.call("HDEL", q.cancelled_in_lane, id)\n  end\n  local first',
        "  end\n  local first",
        ("enqueue_unique",),
    ),
    Mutant("an_empty_lane_waits", '  redis.call("ZREM", q.lanes, lane)\n  if redis', "  if redis", ("enqueue_unique",)),
    Mutant("who_has_nothing_left_stays_in_the_ring", '  redis.call("ZREM", ring, client)\n  if #redis', "  if #redis"),
    Mutant(
        "a_blocked_client_leaves_the_ring",
        'if redis.call("ZSCORE", ring, client) == "inf" then return end',
        NOTHING,
        ("enqueue_unique",),
    ),
    Mutant(
        "an_empty_band_stays",
        '== 0 then redis.call("ZREM", q.bands, band) end',
        "== 0 then return end",
        ("enqueue_unique",),
    ),
    Mutant("a_lane_stays_as_old", "if first and not is_last then", "if false then"),
    Mutant("a_lane_gets_younger", "if first and not is_last then", "if first then"),
    Mutant("jobs_are_dropped_in_vain", "if full and not fits_alone(q, rooms, client) then return full end", NOTHING),
    Mutant(
        "delayed_jobs_of_a_client_count_for_the_queue",
        'count_scheduled(q, "client", client) < rooms',
        'count_scheduled(q, "queue") < rooms',
    ),
    Mutant("delayed_jobs_of_others_do_not_count", ' and count_scheduled(q, "queue") < rooms.queue.most', NOTHING),
    Mutant("the_queue_makes_room_for_a_client", "of_client and client, now)", "nil, now)"),
    Mutant("a_call_drops_without_end", "drops.left = drops.left - 1", NOTHING),
    Mutant("a_call_drops_one_less", "left = MORE + jobs,", "left = MORE + jobs - 1,"),
    Mutant("all_need_their_places_twice", "  rooms = false", "  rooms = rooms"),
    Mutant("all_find_no_places", "drops and clients or {}", "{}"),
    Mutant("all_must_fit_beside_what_is_queued", "{ has_drops = drops }", "{}"),
    # changes
    Mutant(
        "limits_of_waiting_outlast_their_end",
        'string.match(" " .. text, " max_waiting=(%S+)") or "")',
        'string.match(" " .. text, " max_waiting=(%S+)") or "0")',
    ),
    Mutant("a_pause_may_limit_waiting", "if paused then return set_pause", "if paused then set_pause"),
)

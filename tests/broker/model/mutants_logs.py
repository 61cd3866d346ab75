"""Mutants of what keeps the lines that jobs log."""

from __future__ import annotations

from tests.broker.model.mutant import NOTHING, Mutant

LOG_MUTANTS = (
    Mutant(
        "lines_of_others", 'if redis.call("HEXISTS", q.running, id) == 0 then return {} end\n', NOTHING, ("append_log",)
    ),
    Mutant("lines_are_added_again", "tonumber(last_number) >= tonumber(number)", "last_number == number"),
    Mutant("parts_are_compared_as_texts", "tonumber(last_number) >= tonumber(number)", "last_number >= number"),
    Mutant("lines_of_another_process_are_known", "last_token == token and", "last_token and"),
    Mutant(
        "lines_without_end", '  if length > FEW then redis.call("LTRIM", log, -lines_that_fit(), -1) end\n', NOTHING
    ),
    Mutant("one_line_too_many", '"LRANGE", log, -MAX_LINES, -1', '"LRANGE", log, -MAX_LINES - 1, -1'),
    Mutant("noted_without_lines", 'if not is_kept or over_ms == ""', 'if over_ms == ""'),
    Mutant("noted_again", ' or over_ms == "" or is_known then', ' or over_ms == "" then'),
    Mutant("lines_of_too_many", 'redis.call("RPUSH", q.logged, id) - most', 'redis.call("RPUSH", q.logged, id) * 0'),
    Mutant("too_many_are_noted", 'if #gone > 0 then redis.call("LTRIM", q.logged, #gone, -1) end\n', NOTHING),
    Mutant("their_lines_stay", 'do redis.call("UNLINK", q.log .. other) end', "do end"),
    Mutant("discard_keeps_lines", "expire_logs(q, gone, log_ms(undo))\n", NOTHING, ("discard",)),
    Mutant("trim_keeps_lines", "  expire_logs(q, dead, 0)\n", NOTHING, ("trim",)),
    Mutant("purge_keeps_lines", "  expire_logs(q, ids, log_ms(undo))\n", NOTHING, ("purge",)),
    Mutant(
        "cancelled_jobs_lose_their_lines",
        "expire_logs(q, cancelled, keep_ms)",
        "expire_logs(q, cancelled, 0)",
        ("cancel_client_jobs",),
    ),
    Mutant("lines_do_not_move", 'if redis.call("EXISTS", q.log .. id) == 1 then', "if false then", ("move",)),
)

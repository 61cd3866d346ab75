-- The scripts run in Redis (Lua 5.1), each behind the parts (lua/lib/) that its header names under "uses:".
std = "lua51"
max_line_length = 130
cache = false

read_globals = { "redis", "KEYS", "ARGV", "cjson", "named" } -- named(): see scripts.py

-- What a part defines at its left margin, the files behind it may use.
for part in io.popen("ls django_rtq/core/broker/lua/lib/*.lua django_rtq/*/lua/lib/*.lua 2>/dev/null"):lines() do
  for line in io.lines(part) do
    local names = line:match("^local function ([%w_]+)") or line:match("^local ([%w_, ]+)")
    for name in (names or ""):gmatch("[%w_]+") do read_globals[#read_globals + 1] = name end
  end
end

-- 211: what a part defines is used elsewhere. 43x: a part is also checked beside the others.
files["**/lib/*.lua"] = { ignore = { "211", "431" } }

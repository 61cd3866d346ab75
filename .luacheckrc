-- The scripts run in Redis (Lua 5.1), each behind the parts that its header names under "uses:".
std = "lua51"
max_line_length = 130
cache = false

read_globals = { "redis", "KEYS", "ARGV", "cjson", "named" } -- named(): see scripts.py

-- What a part (_*.lua) says at its left margin, the scripts behind it may use.
for part in io.popen("ls django_rtq/broker/lua/_*.lua 2>/dev/null"):lines() do
  for line in io.lines(part) do
    local names = line:match("^local function ([%w_]+)") or line:match("^local ([%w_, ]+)")
    for name in (names or ""):gmatch("[%w_]+") do read_globals[#read_globals + 1] = name end
  end
end

-- 211: in a part, what is said is used elsewhere. 43x: a part is also checked beside the others.
files["**/_*.lua"] = { ignore = { "211", "431" } }

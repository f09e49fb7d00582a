-- Reads leases with their state by Redis's clock.
--
-- KEYS[1..n]  the leases, a bounded number of them
-- ARGV[1]     prefix of registry records
-- Returns     for each key {state, fields and values of the hash}, or {} when there is no such lease

local time = redis.call("TIME")
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function stateOf(key)
  local lease = redis.call("HMGET", key, "expiresAt", "member")
  if tonumber(lease[1]) <= now then
    return "expired"
  end
  local record = redis.call("HMGET", ARGV[1] .. lease[2], "bucket", "draining")
  if not record[1] then
    return "revoked" -- its instance was removed or replaced
  end
  return record[2] == "1" and "draining" or "active"
end

local answer = {}
for i, key in ipairs(KEYS) do
  local fields = redis.call("HGETALL", key)
  answer[i] = #fields > 0 and { stateOf(key), fields } or {}
end
return answer

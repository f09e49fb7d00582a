-- Takes members of one provider whose probe is due. Each is due again after its own timeout and a grace: what a killed
-- worker took comes back by itself.
--
-- KEYS  1 due set of the provider  2 providers with a due set
-- ARGV  1 provider  2 most to take  3 grace, ms
-- Derived keys: the record of each member taken.
-- Returns { { member, fields and values of its record, in turn }, ... }

local due, providers = KEYS[1], KEYS[2]
local provider, limit, grace = ARGV[1], ARGV[2], tonumber(ARGV[3])

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local taken = {}
for _, member in ipairs(redis.call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)) do
  local record = '{ep}:px:' .. member
  local spec = redis.call('HGET', record, 'probe')
  if spec then
    redis.call('ZADD', due, now + cjson.decode(spec).timeoutSeconds * 1000 + grace, member)
    taken[#taken + 1] = { member, redis.call('HGETALL', record) }
  else
    redis.call('ZREM', due, member)
  end
end
if redis.call('EXISTS', due) == 0 then
  redis.call('SREM', providers, provider)
end
return taken

-- Makes a member's probe due now, at most once in a while: a flood of reports must not become a flood of probes.
--
-- KEYS  1 record  2 probe counters
-- ARGV  1 member  2 least time between two calls that count, ms
-- Derived keys, from the record: its due set.
-- Returns 1, or 0 when it was too soon or there is no such instance

local record, probe = KEYS[1], KEYS[2]
local provider = redis.call('HGET', record, 'provider')
if not provider then return 0 end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = redis.call('HGET', probe, 'soonAt')
if last and now - tonumber(last) < tonumber(ARGV[2]) then return 0 end
redis.call('HSET', probe, 'soonAt', now)
redis.call('ZADD', '{ep}:due:' .. provider, 'LT', now, ARGV[1])
return 1

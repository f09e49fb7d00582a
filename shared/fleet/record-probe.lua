-- Counts one probe, judges it, and plans the next.
--
-- The rule: `healthyThreshold` successes in a row make a proxy healthy, `unhealthyThreshold` failures in a row make it
-- unhealthy; anything shorter leaves the verdict as it is. A result counts only for the incarnation and the address
-- that was probed: one for an instance that was replaced, removed or moved is dropped.
--
-- KEYS  1 record  2 probe counters
-- ARGV  1 member          4 reason                     7 host that was probed
--       2 ok, '0' or '1'  5 message                    8 port that was probed
--       3 latency, ms     6 observed IP ('' unknown)   9 random, [0,1)
-- Derived keys, from the record: its free set, its due set.
-- Returns { recorded 0|1, changed 0|1 (the verdict, the observed IP, why there is none yet), healthy '0', '1' or nil (no verdict yet) }

local record, probe = KEYS[1], KEYS[2]
local member, ok, latency, reason, message, ip = ARGV[1], ARGV[2] == '1', ARGV[3], ARGV[4], ARGV[5], ARGV[6]

local r = redis.call('HMGET', record, 'host', 'port', 'healthy', 'verdictReason', 'observedIP', 'probe', 'bucket',
  'provider')
if r[1] ~= ARGV[7] or r[2] ~= ARGV[8] then
  return { 0, 0, r[3] }
end
local spec = cjson.decode(r[6])

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

redis.call('HSET', probe, ok and 'failures' or 'successes', 0)
local inRow = redis.call('HINCRBY', probe, ok and 'successes' or 'failures', 1)

local verdict = r[3]
if ok and inRow >= spec.healthyThreshold then verdict = '1' end
if not ok and inRow >= spec.unhealthyThreshold then verdict = '0' end

local changed = 0
if verdict ~= r[3] then
  changed = 1
  redis.call('HSET', record, 'healthy', verdict, 'verdictReason', reason, 'verdictMessage', message, 'verdictAt', now)
elseif verdict ~= '1' and not ok and reason ~= r[4] then
  -- It fails in another way than it did, or for the first time: whoever looks should see today's cause.
  redis.call('HSET', record, 'verdictReason', reason, 'verdictMessage', message)
  if not verdict then changed = 1 end
end
if ok then
  redis.call('HSET', record, 'latencyMs', latency)
  if ip ~= '' and ip ~= r[5] then
    changed = 1
    redis.call('HSET', record, 'observedIP', ip)
  end
end

local grant = redis.call('HMGET', record, 'healthy', 'draining', 'leases', 'max', 'rank')
local free = '{ep}:free:' .. r[7]
if grant[1] == '1' and grant[2] == '0' and tonumber(grant[3] or 0) < tonumber(grant[4]) then
  redis.call('ZADD', free, grant[5] or '0', member)
else
  redis.call('ZREM', free, member)
end

local wait = spec.intervalSeconds * 1000
-- A new proxy that answers is waited for: its first verdict does not take whole intervals.
if ok and not verdict then wait = math.min(wait, 1000) end
redis.call('ZADD', '{ep}:due:' .. r[8], now + math.floor(wait * (0.9 + 0.2 * tonumber(ARGV[9]))), member)
return { 1, changed, verdict }

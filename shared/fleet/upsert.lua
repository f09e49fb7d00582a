-- Writes what reconcile knows of one instance and puts it into every index; leaves the fields of probes and leases.
--
-- KEYS  1 record          4 names                 7 due set of the provider
--       2 probe counters  5 members of the name   8 providers with a due set
--       3 members         6 buckets
-- ARGV  1 member          5 fence                 9 latency of the seed ('' unknown)
--       2 uid             6 interval, ms         10 observed IP of the seed ('' unknown)
--       3 incarnation     7 timeout, ms          11 message of the seed
--       4 random, [0,1)   8 seed '', '0' or '1'  12 time of the seed, ms
--                                                13 'whole', or 'amend': only a record that is there is written, and
--                                                   it keeps its port, credentials, region and bucket
--                                                14.. fields of the record and their values, in turn
-- Derived keys: the free sets of its bucket and of the one before, the due set of the provider before.
-- Returns { written 0|1, state }
--   state: { healthy, latencyMs, observedIP, verdictReason, verdictMessage, verdictAt, leases }, missing ones nil

local record, probe, members, names, named, buckets, due, providers = unpack(KEYS)
local member, uid, incarnation = ARGV[1], ARGV[2], tonumber(ARGV[3])
local random, fence, interval, timeout = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])

local function state()
  return redis.call('HMGET', record, 'healthy', 'latencyMs', 'observedIP', 'verdictReason', 'verdictMessage',
    'verdictAt', 'leases')
end

local amend = ARGV[13] == 'amend'
local before = redis.call('HMGET', record, 'fence', 'deleted', 'bucket', 'provider', 'host', 'port')
if before[1] and tonumber(before[1]) > tonumber(fence) or amend and not before[6] then
  return { 0, state() }
end

local new = { port = before[6], bucket = before[3] }
for i = 14, #ARGV, 2 do
  new[ARGV[i]] = ARGV[i + 1]
end
local name = new.namespace .. '/' .. new.name

if before[2] then
  redis.call('PERSIST', record)
end
-- Fields that are only sometimes there; the rest is written over.
redis.call('HDEL', record, 'deleted')
if not amend then redis.call('HDEL', record, 'credentials') end
redis.call('HSET', record, unpack(ARGV, 14))

-- What was found out about another address says nothing of this one.
local moved = before[5] and (before[5] ~= new.host or before[6] ~= new.port)
if moved then
  redis.call('HDEL', record, 'healthy', 'latencyMs', 'observedIP', 'verdictReason', 'verdictMessage', 'verdictAt')
  redis.call('DEL', probe)
elseif ARGV[8] ~= '' and redis.call('HSETNX', record, 'healthy', ARGV[8]) == 1 then
  redis.call('HSET', record, 'verdictReason', 'Remembered', 'verdictMessage', ARGV[11], 'verdictAt', ARGV[12])
  if ARGV[9] ~= '' then redis.call('HSET', record, 'latencyMs', ARGV[9]) end
  if ARGV[10] ~= '' then redis.call('HSET', record, 'observedIP', ARGV[10]) end
end

local isNew = redis.call('HSET', members, member, name) == 1
redis.call('SADD', named, member)
if isNew or before[3] ~= new.bucket then redis.call('HINCRBY', buckets, new.bucket, 1) end
-- A retiring incarnation is written after its successor, too: the name stays with the newest.
local owner = redis.call('HGET', names, name)
local ownerUid, ownerIncarnation = string.match(owner or '', '^(.*):(%d+)$')
if ownerUid ~= uid or tonumber(ownerIncarnation) < incarnation then
  redis.call('HSET', names, name, member)
end

if before[3] and before[3] ~= new.bucket then
  redis.call('ZREM', '{ep}:free:' .. before[3], member)
  if redis.call('HINCRBY', buckets, before[3], -1) <= 0 then redis.call('HDEL', buckets, before[3]) end
end
local free = '{ep}:free:' .. new.bucket
local grant = redis.call('HMGET', record, 'healthy', 'draining', 'leases', 'max', 'rank')
if grant[1] == '1' and grant[2] == '0' and tonumber(grant[3] or 0) < tonumber(grant[4]) then
  redis.call('ZADD', free, grant[5] or '0', member)
else
  redis.call('ZREM', free, member)
end

if before[4] and before[4] ~= new.provider then
  redis.call('ZREM', '{ep}:due:' .. before[4], member)
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local planned = redis.call('ZSCORE', due, member)
-- Later than any probe under way may put it: the interval was shortened, or the clock went back.
local latest = now + interval * 1.1 + timeout + 5000
if moved or not planned or tonumber(planned) > latest then
  -- Nobody waits for a proxy that has its verdict, so a refilled Redis spreads those; one without is wanted soon.
  local spread = grant[1] and interval or math.min(interval, 1000)
  redis.call('ZADD', due, now + math.floor(spread * random), member)
end
redis.call('SADD', providers, new.provider)
return { 1, state() }

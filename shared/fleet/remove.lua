-- Takes instances out of every index and leaves a tombstone of each, so that a late write with an older token is ignored.
-- Fields of the lease scripts stay on the tombstone: leases run on to their end.
--
-- KEYS  1 members  2 names  3 buckets
-- ARGV  1 fence                              4 the member that stays, or ''
--       2 time that a tombstone stays, ms    5.. members that go
--       3 `<namespace>/<name>` whose other members go, too, or ''
-- Derived keys, per member: its record and probe counters; from its record: free set, due set; from its name: the set of
-- the name's members.
-- Returns how many were removed; those with a newer fence stay

local members, names, buckets = KEYS[1], KEYS[2], KEYS[3]
local fence, tombstone, name, stays = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function successor(named)
  local best, newest = nil, -1
  for _, member in ipairs(redis.call('SMEMBERS', named)) do
    local incarnation = tonumber(string.match(member, ':(%d+)$'))
    if incarnation > newest then
      best, newest = member, incarnation
    end
  end
  return best
end

local function forget(member, bucket)
  local owner = redis.call('HGET', members, member)
  if not owner then return end
  if bucket and redis.call('HINCRBY', buckets, bucket, -1) <= 0 then redis.call('HDEL', buckets, bucket) end
  local named = '{ep}:named:' .. owner
  redis.call('HDEL', members, member)
  redis.call('SREM', named, member)
  if redis.call('HGET', names, owner) == member then
    local heir = successor(named)
    if heir then
      redis.call('HSET', names, owner, heir)
    else
      redis.call('HDEL', names, owner)
    end
  end
end

local function remove(member)
  local record = '{ep}:px:' .. member
  local before = redis.call('HMGET', record, 'fence', 'bucket', 'provider', 'leases', 'rank', 'lastGrant')
  if before[1] and tonumber(before[1]) > tonumber(fence) then return 0 end
  if before[2] then redis.call('ZREM', '{ep}:free:' .. before[2], member) end
  if before[3] then redis.call('ZREM', '{ep}:due:' .. before[3], member) end
  forget(member, before[2])
  redis.call('DEL', record, '{ep}:probe:' .. member)
  redis.call('HSET', record, 'fence', fence, 'deleted', '1')
  if before[4] then
    redis.call('HSET', record, 'leases', before[4], 'rank', before[5] or '0', 'lastGrant', before[6] or '0')
  end
  redis.call('PEXPIRE', record, tombstone)
  return 1
end

local removed = 0
for i = 5, #ARGV do
  removed = removed + remove(ARGV[i])
end
if name ~= '' then
  for _, member in ipairs(redis.call('SMEMBERS', '{ep}:named:' .. name)) do
    if member ~= stays then removed = removed + remove(member) end
  end
end
return removed

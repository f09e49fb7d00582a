-- Takes instances out of every index and leaves a tombstone of each, so that a late write with an older token is ignored.
-- Fields of the lease scripts stay on the tombstone: leases run on to their end.
--
-- KEYS  1 members  2 names
-- ARGV  1 fence  2 time that a tombstone stays, ms  3 `<namespace>/<name>` whose every member goes, or ''  4.. members
-- Derived keys, per member: its record and probe counters; from its record: free set, due set; from its name: the set of
-- the name's members.
-- Returns how many were removed; those with a newer fence stay

local members, names = KEYS[1], KEYS[2]
local fence, tombstone, name = ARGV[1], ARGV[2], ARGV[3]

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

local function forget(member)
  local owner = redis.call('HGET', members, member)
  if not owner then return end
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
  forget(member)
  redis.call('DEL', record, '{ep}:probe:' .. member)
  redis.call('HSET', record, 'fence', fence, 'deleted', '1')
  if before[4] then
    redis.call('HSET', record, 'leases', before[4], 'rank', before[5] or '0', 'lastGrant', before[6] or '0')
  end
  redis.call('PEXPIRE', record, tombstone)
  return 1
end

local removed = 0
for i = 4, #ARGV do
  removed = removed + remove(ARGV[i])
end
if name ~= '' then
  for _, member in ipairs(redis.call('SMEMBERS', '{ep}:named:' .. name)) do
    removed = removed + remove(member)
  end
end
return removed

-- Sent in front of every script of this folder that changes leases, because Redis has no `require`.
--
-- KEYS[1]  lease expiry: sorted set, `<lease id>|<member>` -> expiry in ms
-- ARGV[1]  prefix of registry records
-- ARGV[2]  prefix of the sorted sets of one member's leases
-- ARGV[3]  prefix of the free sets
-- Defines  now, settle(member), reap(limit)
--
-- Members are found while a script runs, so their keys cannot be declared. All carry one hash tag: on Redis Cluster
-- they lie on the node that KEYS[1] leads to.

local RECORD, LEASES_OF, FREE = ARGV[1], ARGV[2], ARGV[3]

-- Only Redis's own clock counts: the clocks of API replicas differ.
local time = redis.call("TIME")
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- Fewest leases first, then least recently granted. A double is exact up to 2^53: 14 bits of leases (a Proxy has at
-- most 10,000) and 39 bits of time in steps of 8 ms (until the year 2109). Equal ranks fall back to the uid's order.
local function rank(leases, lastGrant)
  return leases * 549755813888 + math.floor(lastGrant / 8)
end

-- Removes the member's expired leases, then brings its count, rank and place in the free set in line with what is left.
-- Returns the number of leases and the most there may be; nil when the instance is not registered any more.
local function settle(member)
  local own = LEASES_OF .. member
  redis.call("ZREMRANGEBYSCORE", own, "-inf", now)
  local record = redis.call("HMGET", RECORD .. member, "bucket", "max", "healthy", "draining", "lastGrant")
  local bucket, max, healthy, draining = record[1], tonumber(record[2]), record[3], record[4]
  local leases = redis.call("ZCARD", own)
  local score = rank(leases, tonumber(record[5] or 0))
  -- A tombstone of a removed instance keeps its count; a record that is gone must not be brought back in part.
  if redis.call("EXISTS", RECORD .. member) == 1 then
    redis.call("HSET", RECORD .. member, "leases", leases, "rank", score)
  end
  if not bucket then
    return nil
  end
  if healthy == "1" and draining ~= "1" and leases < max then
    redis.call("ZADD", FREE .. bucket, score, member)
  else
    redis.call("ZREM", FREE .. bucket, member)
  end
  return leases, max
end

-- Frees what expired leases held, oldest first, at most `limit` of them. Returns how many it freed.
-- The lease hashes stay until their own time to live ends: reports are still taken for a while.
local function reap(limit)
  local expired = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", now, "LIMIT", 0, limit)
  if #expired == 0 then
    return 0
  end
  redis.call("ZREM", KEYS[1], unpack(expired))
  local settled = {}
  for _, entry in ipairs(expired) do
    local member = string.match(entry, "|(.*)$")
    if not settled[member] then
      settled[member] = true
      settle(member)
    end
  end
  return #expired
end

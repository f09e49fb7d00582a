-- Leases one instance, or says that none can be had. Follows settle.lua.
--
-- KEYS[1]     lease expiry
-- KEYS[2]     the lease to be written
-- KEYS[3]     the leases of the API token that asks: sorted set, lease id -> expiry in ms
-- ARGV[1..3]  see settle.lua
-- ARGV[4]     JSON: { id, tokenHash, tokenName, owner, target, ttlMs, lifetimeMs, graceMs, quota (0: none),
--             labels {key: value}, reapLimit, candidateLimit, and either
--             buckets: [names], a bounded number, or
--             candidates: [members], a bounded number, best first }
-- Returns     {"granted", fields and values of the lease, credentials or ""}
--             {"quota"}: the API token has as many leases as it may have
--             {"nothing", reapAgain, lookFurther}, both 0 or 1. Only with both 0 is it true that none of the given
--             buckets has an instance for this request; reapAgain: more leases have expired than one call may
--             free; lookFurther: more free instances than one call may look at

local ask = cjson.decode(ARGV[4])
local reapAgain = reap(ask.reapLimit) == ask.reapLimit and 1 or 0

-- Expired ones do not count, whether they have been removed yet or not.
if ask.quota > 0 and redis.call("ZCOUNT", KEYS[3], "(" .. now, "+inf") >= ask.quota then
  return { "quota" }
end

local function hasLabels(member)
  if next(ask.labels) == nil then
    return true
  end
  local labels = cjson.decode(redis.call("HGET", RECORD .. member, "labels") or "{}")
  for key, value in pairs(ask.labels) do
    if labels[key] ~= value then
      return false
    end
  end
  return true
end

-- The record decides, not the free set that named the member. `settle` also puts a wrong free set right.
local function canLease(member, bucket)
  if not hasLabels(member) then
    return false
  end
  local leases, max = settle(member)
  local record = redis.call("HMGET", RECORD .. member, "bucket", "healthy", "draining")
  if bucket and record[1] ~= bucket then
    redis.call("ZREM", FREE .. bucket, member)
    return false
  end
  return leases ~= nil and leases < max and record[2] == "1" and record[3] ~= "1"
end

local function expireNotBefore(key, at)
  redis.call("PEXPIREAT", key, at, "NX")
  redis.call("PEXPIREAT", key, at, "GT")
end

local function grant(member)
  local names = { "namespace", "name", "uid", "provider", "region", "zone", "host", "port" }
  local record = redis.call("HMGET", RECORD .. member, unpack(names))
  local ips = redis.call("HMGET", RECORD .. member, "observedIP", "egressIP")
  -- What a site saw is better than what the provider says.
  local egressIP = ips[1] and ips[1] ~= "" and ips[1] or ips[2] or ""
  local maxExpiresAt = now + ask.lifetimeMs
  local expiresAt = math.min(now + ask.ttlMs, maxExpiresAt)
  local lease = {
    "id", ask.id, "tokenHash", ask.tokenHash, "tokenName", ask.tokenName, "owner", ask.owner, "target", ask.target,
    "acquiredAt", now, "renewedAt", now, "expiresAt", expiresAt, "maxExpiresAt", maxExpiresAt, "member", member,
    "egressIP", egressIP,
  }
  for i, name in ipairs(names) do
    lease[#lease + 1] = name
    lease[#lease + 1] = record[i] or ""
  end
  redis.call("HSET", KEYS[2], unpack(lease))
  redis.call("PEXPIREAT", KEYS[2], expiresAt + ask.graceMs)
  redis.call("ZADD", KEYS[1], expiresAt, ask.id .. "|" .. member)
  redis.call("ZADD", LEASES_OF .. member, expiresAt, ask.id)
  redis.call("ZADD", KEYS[3], expiresAt, ask.id)
  expireNotBefore(LEASES_OF .. member, expiresAt + ask.graceMs)
  expireNotBefore(KEYS[3], expiresAt + ask.graceMs)
  -- The index of a token has no other cleaner; a bounded step at each grant keeps up with what grants add.
  local stale = redis.call("ZRANGEBYSCORE", KEYS[3], "-inf", now, "LIMIT", 0, ask.reapLimit)
  if #stale > 0 then
    redis.call("ZREM", KEYS[3], unpack(stale))
  end
  redis.call("HSET", RECORD .. member, "lastGrant", now)
  settle(member)
  return { "granted", redis.call("HGETALL", KEYS[2]), redis.call("HGET", RECORD .. member, "credentials") or "" }
end

for _, member in ipairs(ask.candidates or {}) do
  if canLease(member) then
    return grant(member)
  end
end

-- The first `depth` of each bucket, best rank first. Returns them, and whether some bucket has more.
local function heads(depth)
  local found, more = {}, 0
  for _, bucket in ipairs(ask.buckets or {}) do
    local page = redis.call("ZRANGE", FREE .. bucket, 0, depth, "WITHSCORES")
    for i = 1, math.min(#page, depth * 2), 2 do
      found[#found + 1] = { member = page[i], rank = tonumber(page[i + 1]), bucket = bucket }
    end
    if #page > depth * 2 then
      more = 1
    end
  end
  -- The order of the uids breaks ties, so that the sort is the same everywhere.
  table.sort(found, function(a, b)
    return a.rank < b.rank or (a.rank == b.rank and a.member < b.member)
  end)
  return found, more
end

-- The very first of each bucket is nearly always enough, so more are read only when it is not.
local lookFurther = 0
for _, depth in ipairs({ 1, math.max(1, math.floor(ask.candidateLimit / math.max(1, #(ask.buckets or {})))) }) do
  local found, more = heads(depth)
  for _, candidate in ipairs(found) do
    if canLease(candidate.member, candidate.bucket) then
      return grant(candidate.member)
    end
  end
  lookFurther = more
  if more == 0 then
    break
  end
end
return { "nothing", reapAgain, lookFurther }

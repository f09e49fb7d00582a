-- Ends one lease at once. Follows settle.lua.
--
-- KEYS[1]     lease expiry
-- KEYS[2]     the lease
-- ARGV[1..3]  see settle.lua
-- ARGV[4]     prefix of the sorted sets of one API token's leases
-- ARGV[5]     lease id
-- ARGV[6]     name of the API token that must have taken it; empty: any
-- ARGV[7]     hash of the lease's own token; empty: not compared
-- Returns     "released", "gone", "not-owner" or "wrong-token"

local lease = redis.call("HMGET", KEYS[2], "tokenName", "tokenHash", "member")
local tokenName, tokenHash, member = lease[1], lease[2], lease[3]
if not member then
  return "gone"
end
if ARGV[6] ~= "" and ARGV[6] ~= tokenName then
  return "not-owner"
end
if ARGV[7] ~= "" and ARGV[7] ~= tokenHash then
  return "wrong-token"
end
redis.call("DEL", KEYS[2])
redis.call("ZREM", KEYS[1], ARGV[5] .. "|" .. member)
redis.call("ZREM", LEASES_OF .. member, ARGV[5])
redis.call("ZREM", ARGV[4] .. tokenName, ARGV[5])
settle(member)
return "released"

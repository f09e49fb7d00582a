-- Frees the capacity of expired leases. Follows settle.lua.
--
-- KEYS[1]     lease expiry
-- ARGV[1..3]  see settle.lua
-- ARGV[4]     most leases to free in this call: what one script may do is bounded
-- Returns     how many were freed

return reap(tonumber(ARGV[4]))

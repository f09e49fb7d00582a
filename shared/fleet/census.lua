-- One page of what the gauges count, without the rest of the records.
--
-- KEYS  1 members
-- ARGV  1 cursor  2 about how many to look at
-- Derived keys: the record of each member of the page.
-- Returns { next cursor ('0': that was the last page), { { member, { provider, healthy, draining, leases } }, ... } }

local scan = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local page = {}
for i = 1, #scan[2], 2 do
  local member = scan[2][i]
  page[#page + 1] = { member, redis.call('HMGET', '{ep}:px:' .. member, 'provider', 'healthy', 'draining', 'leases') }
end
return { scan[1], page }

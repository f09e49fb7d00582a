-- One page of the registry.
--
-- KEYS  1 members
-- ARGV  1 cursor  2 about how many to look at  3.. namespaces to keep; none: all
-- Derived keys: the record of each member of the page.
-- Returns { next cursor ('0': that was the last page), { { member, fields and values of its record, in turn }, ... } }

local wanted = {}
for i = 3, #ARGV do
  wanted[ARGV[i]] = true
end

local scan = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local page = {}
for i = 1, #scan[2], 2 do
  local member, name = scan[2][i], scan[2][i + 1]
  if #ARGV < 3 or wanted[string.match(name, '^([^/]*)/')] then
    page[#page + 1] = { member, redis.call('HGETALL', '{ep}:px:' .. member) }
  end
end
return { scan[1], page }

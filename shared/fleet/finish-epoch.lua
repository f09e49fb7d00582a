-- Names a data set that was filled, if it is still the one whose filling was begun.
-- KEYS[1]  id of who fills it; gone when Redis was emptied since
-- KEYS[2]  the epoch
-- ARGV[1]  the id that filling was begun with
-- Returns  1, or 0 when nothing was written
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[1])
redis.call('DEL', KEYS[1])
return 1

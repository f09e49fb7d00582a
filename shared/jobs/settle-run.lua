-- Records how a run ended, unless a newer run has begun: then nothing is written.
-- KEYS[1]  hash {gen, run, fails} of the key
-- ARGV[1]  the run's fencing token
-- ARGV[2]  'reset', 'count' or 'keep' the failures in a row
-- Returns  1, or 0 when the run is superseded (or Redis lost the hash)
if redis.call('HGET', KEYS[1], 'run') ~= ARGV[1] then return 0 end
if ARGV[2] == 'reset' then redis.call('HDEL', KEYS[1], 'fails') end
if ARGV[2] == 'count' then redis.call('HINCRBY', KEYS[1], 'fails', 1) end
return 1

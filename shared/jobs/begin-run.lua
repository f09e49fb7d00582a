-- Opens a run of one job key: gives it a fencing token greater than that of every earlier run.
-- The token is at least the server's clock in microseconds, so it grows also after Redis lost its data. (Not
-- milliseconds: runs of one key can follow each other faster, and their tokens would get ahead of the clock.)
-- KEYS[1]  hash {gen, run, fails} of the key
-- ARGV[1]  time to live of the hash in milliseconds; each run renews it, so the hashes of deleted objects go away
-- Returns  {token, gen, fails}, all as strings
local time = redis.call('TIME')
local token = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('HGET', KEYS[1], 'run') or '0')
if last >= token then token = last + 1 end
-- %.0f: Lua would print a number of this size as 1.7e+15
local text = string.format('%.0f', token)
redis.call('HSET', KEYS[1], 'run', text)
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return { text, redis.call('HGET', KEYS[1], 'gen') or '0', redis.call('HGET', KEYS[1], 'fails') or '0' }

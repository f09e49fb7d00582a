-- For script.test.ts.
-- KEYS[1]  counter
-- ARGV[1]  any text
-- Returns  {counter, text}
return { redis.call('INCR', KEYS[1]), ARGV[1] }

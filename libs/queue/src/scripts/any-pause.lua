local anyPause = redis.call('EXISTS', pauses) == 1

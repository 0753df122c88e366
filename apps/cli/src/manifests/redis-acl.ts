/** Commands of a connection, also on a Redis Cluster. AUTH, HELLO and QUIT need no permission. */
const CONNECTION =
  "ping select client|setname asking readonly cluster|info cluster|nodes cluster|slots";
/** Commands that change nothing. Scripts are sent by hash or as text; each command in a script needs its own permission. */
const READS =
  "eval evalsha info time exists get getrange hexists hget hgetall hkeys hlen hmget hscan hstrlen hvals lindex llen lpos lrange mget pttl scard sismember smembers srandmember strlen ttl type xlen xrange xread xrevrange zcard zcount zlexcount zmscore zrange zrangebylex zrangebyscore zrank zrevrange zrevrangebyscore zscore";
const WRITES =
  "decrby del getdel hdel hincrby hmset hset hsetnx incr incrby lpop lpush lrem lset ltrim persist pexpire pexpireat rename rpop rpoplpush rpush sadd set setnx spop srem sunionstore unlink xadd xdel xtrim zadd zincrby zpopmin zrem zremrangebyrank zremrangebyscore";
const MESSAGES = "publish subscribe unsubscribe";
const TRANSACTIONS = "multi exec";
/** The API waits for answers. */
const WAITS = "blpop bzpopmin";
/** Workers wait for the jobs of all queues with one command, and interrupt it to add a queue. */
const INTERRUPTED_WAITS = `${WAITS} client|id client|unblock`;

const ROLES = {
  worker: [CONNECTION, READS, WRITES, TRANSACTIONS, MESSAGES, INTERRUPTED_WAITS],
  // The page of raw jobs counts the connections of workers.
  api: [CONNECTION, READS, WRITES, TRANSACTIONS, MESSAGES, WAITS, "client|list"],
  viewer: [CONNECTION, READS, TRANSACTIONS],
} as const;

export interface RedisUser {
  readonly role: keyof typeof ROLES;
  readonly name: string;
  /** The rules of ACL SETUSER, without a password. */
  readonly rules: readonly string[];
}

export interface RedisUsersOptions {
  /** Prefix of the names of the users. */
  readonly name: string;
  /** Prefix of the installation in Redis. */
  readonly prefix: string;
  /** The clusters; empty if a provider names them, which permits all names of clusters. */
  readonly clusters: readonly string[];
}

/**
 * Returns the users of an installation. Workers have no access to the tokens, sessions and audit log of the HTTP API, so a
 * compromised handler cannot create a token.
 */
export function redisUsers({ name, prefix, clusters }: RedisUsersOptions): RedisUser[] {
  const ofClusters =
    clusters.length === 0
      ? [`~${prefix}:{*`]
      : clusters.flatMap((cluster) => {
          const root = `~${prefix}:{${literal(encodeURIComponent(cluster))}`;
          return [`${root}}*`, `${root}/*`];
        });
  const keys = {
    worker: [`~${prefix}:clusters`, `~${prefix}:restore`, `~${prefix}:{/*`, ...ofClusters],
    api: [`~${prefix}:*`],
    viewer: [`~${prefix}:*`],
  };
  return (["worker", "api", "viewer"] as const).map((role) => ({
    role,
    name: `${name}-${role}`,
    rules: [
      "on",
      "resetkeys",
      ...new Set(keys[role]),
      "resetchannels",
      ...(role === "viewer" ? [] : [`&${prefix}:*`]),
      "-@all",
      ...ROLES[role].flatMap((commands) => commands.split(" ").map((command) => `+${command}`)),
    ],
  }));
}

/** Escapes the characters that are special in a pattern of keys. */
function literal(text: string): string {
  return text.replace(/[*?[\]\\^]/g, String.raw`\$&`);
}

/** Returns commands for redis-cli that create or change the users. They keep passwords. */
export function aclText(users: readonly RedisUser[]): string {
  return users.map(({ name, rules }) => `ACL SETUSER ${name} ${rules.join(" ")}\n`).join("");
}

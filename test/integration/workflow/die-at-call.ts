/** Preloaded by a process under test: it kills itself before or after one call of a script in Redis. */
import { Redis, type Command } from "ioredis";

/** The first call of the script with this hash whose arguments include all of `having`. */
export interface DeathPoint {
  readonly sha: string;
  readonly having: readonly string[];
  /** `before`: the call is not sent. `after`: Redis has run it, the response is lost. */
  readonly when: "before" | "after";
}

const { sha, having, when } = JSON.parse(process.env["DIE_AT_CALL"] ?? "{}") as DeathPoint;
const die = () => process.kill(process.pid, "SIGKILL");

// oxlint-disable-next-line typescript/unbound-method -- called with its own `this` below
const { sendCommand } = Redis.prototype;
Redis.prototype.sendCommand = function watched(this: Redis, command: Command, stream) {
  const args = command.args.map(String);
  const isIt = args[0] === sha && having.every((argument) => args.includes(argument));
  if (isIt && when === "before") die();
  // A call that Redis rejects because it has not loaded the script does not count.
  if (isIt) void command.promise.then(die, () => undefined);
  return sendCommand.call(this, command, stream);
};

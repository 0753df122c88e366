import { ORDER } from "@konverge/core";
import { readLua, type LuaPart } from "@konverge/redis";

/** The fleet's order of token requests. Needs the keys `order` and `turns`, and the arguments `worker` and `rank`. */
export const tokenOrderPart: LuaPart = {
  lua: readLua(new URL("token-order.lua", import.meta.url)),
  constants: { ORDER },
};

import { conditions, defineResource } from "konverge";
import { z } from "zod";

const GROUP = { group: "shop.konverge.dev", version: "v1" };
const status = z.object({ phase: z.string(), conditions });

/** A customer. Most objects of the incident are tenants, and all of them are well. */
export const Tenant = defineResource({
  ...GROUP,
  kind: "Tenant",
  spec: z.object({ tier: z.string().default("free") }),
  status,
});

/** The host decides how the order at the certificate authority ends. */
export const Certificate = defineResource({
  ...GROUP,
  kind: "Certificate",
  spec: z.object({ host: z.string() }),
  status,
});

export const Database = defineResource({
  ...GROUP,
  kind: "Database",
  spec: z.object({ size: z.int().default(1) }),
  status,
});

/** A share of the traffic. Another program writes `weight` as well. */
export const RoutePolicy = defineResource({
  ...GROUP,
  kind: "RoutePolicy",
  spec: z.object({ weight: z.int().default(1) }),
  status: z.object({ phase: z.string() }),
});

/** A quota whose controller writes the time of its last look, and so starts itself. */
export const Quota = defineResource({
  ...GROUP,
  kind: "Quota",
  spec: z.object({ limit: z.int().default(10), checkedAt: z.string().optional() }),
  status: z.object({ phase: z.string() }),
});

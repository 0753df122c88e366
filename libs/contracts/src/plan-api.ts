import { planRecordSchema } from "@konverge/records";
import { z } from "zod";
import { oneOf } from "./query-fields.ts";

const PLAN_CLASSES = ["interactive", "background"] as const;

/** `unavailable`: no worker of the controller runs plans. `lost`: the worker stopped before the plan ended. */
const PLAN_STATES = ["waiting", "running", "ended", "lost", "unavailable"] as const;

/** Query of `POST /v1/objects/{cluster}/{controller}/{namespace}/{name}/plans`. */
export const planQuerySchema = z.strictObject({
  /** `background`, for plans of many objects: after all other calls, and kept for 10 minutes. */
  class: z.enum(PLAN_CLASSES, oneOf(PLAN_CLASSES)).default("interactive"),
});

/** Response of `POST /v1/objects/{cluster}/{controller}/{namespace}/{name}/plans`. */
export const objectPlanSchema = z.object({
  id: z.string(),
  /** The key of the object. */
  key: z.string(),
  state: z.enum(PLAN_STATES),
  /** The reason why there is no record. */
  message: z.string().optional(),
  /** The record of a plan that has ended. */
  plan: planRecordSchema.optional(),
});

/** Response of `GET /v1/objects/{cluster}/{controller}/{namespace}/{name}/plans`: newest first, at most 20. */
export const planListSchema = z.object({ items: z.array(planRecordSchema) });

export type ObjectPlan = z.infer<typeof objectPlanSchema>;
export type PlanList = z.infer<typeof planListSchema>;

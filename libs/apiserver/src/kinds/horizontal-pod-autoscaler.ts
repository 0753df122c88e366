import { cloneJson, type JsonObject } from "@konverge/core";
import { invalid, required, type FieldError } from "../errors/field-error.ts";
import { objectOf, objectsOf, textOf } from "../objects/metadata.ts";
import { defineBuiltinKind } from "./builtin-kind.ts";
import { memberOf } from "./pod-template.ts";
import type { ResourceKind } from "./resource-kind.ts";

const SCALE_UP: JsonObject = {
  stabilizationWindowSeconds: 0,
  selectPolicy: "Max",
  policies: [
    { type: "Pods", value: 4, periodSeconds: 15 },
    { type: "Percent", value: 100, periodSeconds: 15 },
  ],
};
const SCALE_DOWN: JsonObject = {
  selectPolicy: "Max",
  policies: [{ type: "Percent", value: 100, periodSeconds: 15 }],
};

export const horizontalPodAutoscaler: ResourceKind = defineBuiltinKind({
  group: "autoscaling",
  version: "v2",
  kind: "HorizontalPodAutoscaler",
  resource: "horizontalpodautoscalers",
  shortNames: ["hpa"],
  categories: ["all"],
  definition: "autoscaling.v2.HorizontalPodAutoscaler",
  subresources: ["status"],
  applyDefaults: (object) => {
    const spec = memberOf(object, "spec");
    spec["minReplicas"] ??= 1;
    if (objectsOf(spec, "metrics").length === 0) {
      const target = { type: "Utilization", averageUtilization: 80 };
      spec["metrics"] = [{ type: "Resource", resource: { name: "cpu", target } }];
    }
    const behavior = objectOf(spec, "behavior");
    if (behavior === undefined) return;
    behavior["scaleUp"] = { ...cloneJson(SCALE_UP), ...objectOf(behavior, "scaleUp") };
    behavior["scaleDown"] = { ...cloneJson(SCALE_DOWN), ...objectOf(behavior, "scaleDown") };
  },
  prepareCreate: (object) => {
    object["status"] = { desiredReplicas: 0, currentMetrics: null };
  },
  validateCreate: validateAutoscaler,
  validateUpdate: (next, _live, subresource) =>
    subresource === "status" ? [] : validateAutoscaler(next),
});

function validateAutoscaler(object: JsonObject): FieldError[] {
  const spec = objectOf(object, "spec") ?? {};
  const [min, max] = [Number(spec["minReplicas"]), Number(spec["maxReplicas"] ?? 0)];
  const errors: FieldError[] = [];
  if (min < 1) {
    errors.push(invalid("spec.minReplicas", min, "must be greater than or equal to 1"));
  }
  if (max < 1) errors.push(invalid("spec.maxReplicas", max, "must be greater than 0"));
  if (max < min) {
    const detail = "must be greater than or equal to `minReplicas`";
    errors.push(invalid("spec.maxReplicas", max, detail));
  }
  const target = objectOf(spec, "scaleTargetRef") ?? {};
  for (const member of ["kind", "name"]) {
    if (textOf(target, member) === "") errors.push(required(`spec.scaleTargetRef.${member}`));
  }
  return errors;
}

import type { JsonObject } from "@konverge/core";
import { invalid, type FieldError } from "../errors/field-error.ts";
import { objectOf, objectsOf, textOf } from "../objects/metadata.ts";

const COUNTS = ["active", "succeeded", "failed", "ready", "terminating"];
/** Conditions that a finished Job keeps. */
const FINAL = ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"];

/** Validates a write to the status of a Job, which is rejected unless it is as the Job controller writes it. */
export function validateJobStatus(next: JsonObject, live: JsonObject): FieldError[] {
  const status = objectOf(next, "status") ?? {};
  const errors = COUNTS.filter((count) => countOf(status, count) < 0).map((count) =>
    invalid(`status.${count}`, countOf(status, count), "must be greater than or equal to 0"),
  );
  if (countOf(status, "ready") > countOf(status, "active")) {
    const detail = "cannot set more ready pods than active";
    errors.push(invalid("status.ready", countOf(status, "ready"), detail));
  }
  const reject = (member: string, detail: string) => {
    errors.push(invalid(`status.${member}`, status[member] ?? null, detail));
  };
  validateConditions(status, reject);
  validateTimes(status, reject);
  const isFinal = (type: string) => has(objectOf(live, "status") ?? {}, type);
  for (const type of FINAL.filter((one) => isFinal(one) && !has(status, one))) {
    reject("conditions", `cannot disable the terminal condition ${type}`);
  }
  return errors;
}

type Reject = (member: string, detail: string) => void;

function validateConditions(status: JsonObject, reject: Reject): void {
  if (has(status, "Complete")) {
    if (has(status, "Failed")) {
      reject("conditions", "cannot set Complete=True and Failed=true conditions");
    }
    if (has(status, "FailureTarget")) {
      reject("conditions", "cannot set Complete=True and FailureTarget=true conditions");
    }
    if (!has(status, "SuccessCriteriaMet")) {
      reject(
        "conditions",
        "cannot set Complete=True condition without the SuccessCriteriaMet condition",
      );
    }
  }
  if (
    has(status, "SuccessCriteriaMet") &&
    (has(status, "Failed") || has(status, "FailureTarget"))
  ) {
    reject("conditions", "cannot set SuccessCriteriaMet=True with a failure condition");
  }
  if (has(status, "Failed") && !has(status, "FailureTarget")) {
    reject("conditions", "cannot set Failed=True condition without the FailureTarget condition");
  }
}

function validateTimes(status: JsonObject, reject: Reject): void {
  const [startTime, completionTime] = [
    textOf(status, "startTime"),
    textOf(status, "completionTime"),
  ];
  const isComplete = has(status, "Complete");
  if (completionTime !== "" && !isComplete) {
    reject("completionTime", "cannot set completionTime when there is no Complete=True condition");
  }
  if (isComplete && completionTime === "") {
    reject("completionTime", "completionTime is required for Complete jobs");
  }
  if (startTime !== "" && completionTime !== "" && completionTime < startTime) {
    reject("completionTime", "completionTime cannot be set before startTime");
  }
  if (!isComplete && !has(status, "Failed")) return;
  if (startTime === "") reject("startTime", "startTime is required for finished job");
  for (const member of ["active", "terminating"]) {
    if (countOf(status, member) > 0) {
      reject(member, `${member}>0 is invalid for finished job`);
    }
  }
}

const countOf = (status: JsonObject, count: string): number => Number(status[count] ?? 0);

function has(status: JsonObject, type: string): boolean {
  return objectsOf(status, "conditions").some(
    (one) => one["type"] === type && one["status"] === "True",
  );
}

import type { TracerProvider } from "@opentelemetry/api";
import { createTracing } from "./create-tracing.ts";
import type { Tracing } from "./tracing.ts";

const SCOPE = "konverge";
/** Longest export of the last spans, in ms. An unavailable collector must not delay the process. */
const FLUSH_MS = 2_000;

/** Members of an SDK's provider beyond the API, and of the API's proxy without an SDK. */
interface Provider extends TracerProvider {
  readonly getDelegate?: () => TracerProvider;
  readonly getDelegateTracer?: (
    ...args: Parameters<TracerProvider["getTracer"]>
  ) => ReturnType<TracerProvider["getTracer"]> | undefined;
  readonly forceFlush?: () => Promise<void>;
}

/**
 * Traces with the OpenTelemetry SDK that the process has registered. Undefined without an SDK or without `@opentelemetry/api`.
 * Looks once: an SDK that is registered later is ignored.
 */
export async function loadTracing(version: string): Promise<Tracing | undefined> {
  const api = await importApi();
  if (api === undefined) return undefined;
  const provider: Provider = api.trace.getTracerProvider();
  const tracer =
    provider.getDelegateTracer === undefined
      ? provider.getTracer(SCOPE, version)
      : provider.getDelegateTracer(SCOPE, version);
  if (tracer === undefined) return undefined;
  const sdk: Provider = provider.getDelegate?.() ?? provider;
  return createTracing(api, tracer, () => flush(sdk));
}

async function importApi(): Promise<typeof import("@opentelemetry/api") | undefined> {
  try {
    return await import("@opentelemetry/api");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND") {
      return undefined;
    }
    throw error;
  }
}

async function flush(sdk: Provider): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, FLUSH_MS);
  try {
    // The SDK's own diagnostics report failed exports.
    await Promise.race([Promise.resolve(sdk.forceFlush?.()).catch(() => undefined), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Name of the Lease that elects a controller's producer, or {@link WAITS_LEASE}. */
export function leaseName(installation: string, controller: string): string {
  return `${installation}-${controller}`;
}

"""The operator of kopf's tutorial: a PersistentVolumeClaim for each EphemeralVolumeClaim."""

import kopf
import kubernetes


def claim(name, size):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": {"volume.beta.kubernetes.io/storage-class": "standard"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    }


@kopf.on.create("ephemeralvolumeclaims")
def create_fn(spec, name, namespace, logger, **kwargs):
    size = spec.get("size")
    if not size:
        raise kopf.PermanentError(f"Size must be set. Got {size!r}.")
    data = claim(name, size)
    kopf.adopt(data)
    api = kubernetes.client.CoreV1Api()
    made = api.create_namespaced_persistent_volume_claim(namespace=namespace, body=data)
    logger.info("PVC child is created: %s", made.metadata.name)
    return {"pvc-name": made.metadata.name}


@kopf.on.update("ephemeralvolumeclaims")
def update_fn(spec, status, namespace, logger, **kwargs):
    size = spec.get("size", None)
    if not size:
        raise kopf.PermanentError(f"Size must be set. Got {size!r}.")
    patch = {"metadata": {"annotations": {"size": size}}}
    api = kubernetes.client.CoreV1Api()
    name = status["create_fn"]["pvc-name"]
    api.patch_namespaced_persistent_volume_claim(namespace=namespace, name=name, body=patch)
    logger.info("PVC child is updated: %s", name)


@kopf.on.field("ephemeralvolumeclaims", field="metadata.labels")
def relabel(diff, status, namespace, **kwargs):
    labels = {field[0]: new for _, field, _, new in diff if field}
    if not labels and diff:
        labels = dict(diff[0][3] or {})
    name = status.get("create_fn", {}).get("pvc-name")
    if name is None:
        return
    api = kubernetes.client.CoreV1Api()
    api.patch_namespaced_persistent_volume_claim(namespace=namespace, name=name, body={"metadata": {"labels": labels}})

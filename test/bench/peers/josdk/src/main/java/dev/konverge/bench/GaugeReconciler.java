package dev.konverge.bench;

import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import java.util.concurrent.CountDownLatch;

/** Reads from its cache, and writes the status if it differs, by server-side apply as is the SDK's default. */
@ControllerConfiguration
public final class GaugeReconciler implements Reconciler<Gauge> {
  private final CountDownLatch remaining;

  GaugeReconciler(int objects) {
    remaining = new CountDownLatch(objects);
  }

  @Override
  public UpdateControl<Gauge> reconcile(Gauge gauge, Context<Gauge> context) {
    remaining.countDown();
    long step = gauge.getSpec().step;
    if (gauge.getStatus() != null && gauge.getStatus().seen == step) {
      return UpdateControl.noUpdate();
    }
    var written = new Gauge();
    written.setMetadata(new ObjectMetaBuilder()
        .withName(gauge.getMetadata().getName())
        .withNamespace(gauge.getMetadata().getNamespace())
        .build());
    var status = new Gauge.Status();
    status.seen = step;
    written.setStatus(status);
    return UpdateControl.patchStatus(written);
  }

  void awaitAll() throws InterruptedException {
    remaining.await();
  }
}

#include "tree-manager/api/metrics.h"

#include "tests/unit/manager/cluster_fixture.h"
#include "tests/unit/service_kit/metrics_document.h"

namespace tributary::manager {
namespace {

using MetricsTest = ClusterFixture;

TEST_F(MetricsTest, AreThoseOfTheDocument) {
  open();
  service::HttpDoor door(1, 1);
  ApiMetrics metrics;
  metrics.show_door(door);
  EventStreams streams;
  metrics.show_streams(streams);
  service::expect_documented(metrics.page(cluster_.get(), {}), TRIBUTARY_METRICS_DOCUMENT);
}

}  // namespace
}  // namespace tributary::manager

#pragma once

#include "client/plugins/tensorflow/api.h"
#include "client/plugins/tensorflow/collective.h"
#include "tributary/tributary.h"

namespace tributary::tensorflow {

/// Names the communicator of later calls; nullptr: none. The caller owns it, and keeps it until its calls have ended.
void use(tributary_comm* comm, int ranks);

/// Reads the operator's attribute: the reduction, or the root.
void* create_kernel(KernelConstruction* construction, const char* attribute);
void destroy_kernel(void* kernel);
/// Starts the collective, and returns. `done` runs when it has ended.
void compute(Collective collective, void* kernel, KernelContext* context, Done* done);

}  // namespace tributary::tensorflow

// Registers the operators with the TensorFlow of the process while it loads the library (tf.load_op_library).
#include <cstdio>

#include "client/plugins/tensorflow/api.h"
#include "client/plugins/tensorflow/kernel.h"

namespace tributary::tensorflow {
namespace {

void shape_of_input(Shapes* shapes, Status* status) {
  Shape* const shape = api().NewShapeHandle();
  api().ShapeInferenceContextGetInput(shapes, 0, shape, status);
  if (api().GetCode(status) == 0) api().ShapeInferenceContextSetOutput(shapes, 0, shape, status);
  api().DeleteShapeHandle(shape);
}

void unknown_shape(Shapes* shapes, Status* status) {
  api().ShapeInferenceContextSetUnknownShape(shapes, status);
}

template <Collective collective>
void compute_one(void* kernel, KernelContext* context, Done* done) {
  compute(collective, kernel, context, done);
}

void* create_with_reduction(KernelConstruction* construction) {
  return create_kernel(construction, "reduction");
}
void* create_with_root(KernelConstruction* construction) {
  return create_kernel(construction, "root");
}
void* create_plain(KernelConstruction* construction) {
  return create_kernel(construction, nullptr);
}

struct Operator {
  const char* name;
  const char* attribute;
  void* (*create)(KernelConstruction*);
  void (*compute)(void*, KernelContext*, Done*);
  void (*shape)(Shapes*, Status*);
};

constexpr Operator kOperators[] = {
    {"TributaryAllreduce", "reduction: int", create_with_reduction, compute_one<Collective::all_reduce>,
     shape_of_input},
    {"TributaryBroadcast", "root: int", create_with_root, compute_one<Collective::broadcast>, shape_of_input},
    {"TributaryAllgather", nullptr, create_plain, compute_one<Collective::all_gather>, unknown_shape},
    {"TributaryAlltoall", nullptr, create_plain, compute_one<Collective::all_to_all>, shape_of_input},
    {"TributaryReducescatter", "reduction: int", create_with_reduction, compute_one<Collective::reduce_scatter>,
     unknown_shape},
};

// Stateful, so that a tf.function makes the calls in the program's order, which is the same on all ranks, and keeps
// calls whose result is not used.
void add(const Operator& one, Status* status) {
  OpDefinition* const definition = api().NewOpDefinitionBuilder(one.name);
  api().OpDefinitionBuilderAddAttr(definition, "T: type");
  if (one.attribute != nullptr) api().OpDefinitionBuilderAddAttr(definition, one.attribute);
  api().OpDefinitionBuilderAddInput(definition, "tensor: T");
  api().OpDefinitionBuilderAddOutput(definition, "result: T");
  api().OpDefinitionBuilderSetIsStateful(definition, true);
  api().OpDefinitionBuilderSetShapeInferenceFunction(definition, one.shape);
  api().RegisterOpDefinition(definition, status);
  if (api().GetCode(status) != 0) return;
  Kernel* const kernel = api().NewAsyncKernelBuilder(one.name, "CPU", one.create, one.compute, &destroy_kernel);
  api().RegisterKernelBuilder(one.name, kernel, status);
}

__attribute__((constructor)) void add_operators() {
  if (load_api() == nullptr) return;
  Status* const status = api().NewStatus();
  for (const Operator& one : kOperators) {
    if (api().GetCode(status) == 0) add(one, status);
  }
  if (api().GetCode(status) != 0) std::fprintf(stderr, "tributary-tensorflow: %s\n", api().Message(status));
  api().DeleteStatus(status);
}

}  // namespace
}  // namespace tributary::tensorflow

extern "C" TRIBUTARY_API void tributary_tensorflow_use(tributary_comm* comm, int ranks) {
  tributary::tensorflow::use(comm, ranks);
}

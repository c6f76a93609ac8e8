#include "client/plugins/tensorflow/api.h"

#include <dlfcn.h>

#include <cstdio>
#include <string>

namespace tributary::tensorflow {
namespace {

Api table;

template <class Function>
bool find(void* framework, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(framework, name));
  if (function != nullptr) return true;
  std::fprintf(stderr, "tributary-tensorflow: this TensorFlow has no %s; install a newer one\n", name);
  return false;
}

}  // namespace

const Api* load_api() {
  void* const framework = dlopen("libtensorflow_framework.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (framework == nullptr) {
    std::fprintf(stderr, "tributary-tensorflow: the process has not loaded TensorFlow; import tributary.tensorflow\n");
    return nullptr;
  }
#define FIND(name) find(framework, "TF_" #name, table.name)
  const bool found =
      FIND(NewStatus) && FIND(DeleteStatus) && FIND(SetStatus) && FIND(GetCode) && FIND(Message) &&
      FIND(NewOpDefinitionBuilder) && FIND(OpDefinitionBuilderAddAttr) && FIND(OpDefinitionBuilderAddInput) &&
      FIND(OpDefinitionBuilderAddOutput) && FIND(OpDefinitionBuilderSetIsStateful) &&
      FIND(OpDefinitionBuilderSetShapeInferenceFunction) && FIND(RegisterOpDefinition) && FIND(NewShapeHandle) &&
      FIND(DeleteShapeHandle) && FIND(ShapeInferenceContextGetInput) && FIND(ShapeInferenceContextSetOutput) &&
      FIND(ShapeInferenceContextSetUnknownShape) && FIND(NewAsyncKernelBuilder) && FIND(RegisterKernelBuilder) &&
      FIND(OpKernelConstruction_GetAttrInt32) && FIND(OpKernelConstruction_Failure) && FIND(OpKernelContext_Failure) &&
      FIND(GetInput) && FIND(AllocateOutput) && FIND(RunAsyncOpKernelDoneCallback) && FIND(DeleteTensor) &&
      FIND(TensorType) && FIND(NumDims) && FIND(Dim) && FIND(TensorByteSize) && FIND(TensorData) &&
      FIND(TensorElementCount);
#undef FIND
  return found ? &table : nullptr;
}

const Api& api() {
  return table;
}

}  // namespace tributary::tensorflow

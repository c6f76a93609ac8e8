#pragma once

#include <cstddef>
#include <cstdint>

// The part of TensorFlow's C interface that the operators use. TensorFlow keeps it stable, so one build of the library
// works with every TensorFlow that has these functions. The library is linked without TensorFlow: it
// takes the functions from the libtensorflow_framework that the process has loaded.
namespace tributary::tensorflow {

struct Status;
struct Tensor;
struct OpDefinition;
struct Shapes;
struct Shape;
struct Kernel;
struct KernelConstruction;
struct KernelContext;
struct Done;

// TF_DataType, as far as the operators know it.
enum DataType : int {
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kComplex64 = 8,
  kInt64 = 9,
  kBfloat16 = 14,
  kUint16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kUint32 = 22,
  kUint64 = 23
};

// TF_Code. TensorFlow replaces "unavailable" by "internal" where no operator of its own reports it.
enum Code : int { kInvalidArgument = 3, kDeadlineExceeded = 4, kFailedPrecondition = 9, kAborted = 10 };

/// The functions, by TensorFlow's names less "TF_".
struct Api {
  Status* (*NewStatus)();
  void (*DeleteStatus)(Status*);
  void (*SetStatus)(Status*, int code, const char* text);
  int (*GetCode)(const Status*);
  const char* (*Message)(const Status*);

  OpDefinition* (*NewOpDefinitionBuilder)(const char* name);
  void (*OpDefinitionBuilderAddAttr)(OpDefinition*, const char* spec);
  void (*OpDefinitionBuilderAddInput)(OpDefinition*, const char* spec);
  void (*OpDefinitionBuilderAddOutput)(OpDefinition*, const char* spec);
  void (*OpDefinitionBuilderSetIsStateful)(OpDefinition*, bool);
  void (*OpDefinitionBuilderSetShapeInferenceFunction)(OpDefinition*, void (*)(Shapes*, Status*));
  void (*RegisterOpDefinition)(OpDefinition*, Status*);
  Shape* (*NewShapeHandle)();
  void (*DeleteShapeHandle)(Shape*);
  void (*ShapeInferenceContextGetInput)(Shapes*, int index, Shape*, Status*);
  void (*ShapeInferenceContextSetOutput)(Shapes*, int index, Shape*, Status*);
  void (*ShapeInferenceContextSetUnknownShape)(Shapes*, Status*);

  Kernel* (*NewAsyncKernelBuilder)(const char* op, const char* device, void* (*create)(KernelConstruction*),
                                   void (*compute)(void*, KernelContext*, Done*), void (*destroy)(void*));
  void (*RegisterKernelBuilder)(const char* name, Kernel*, Status*);
  void (*OpKernelConstruction_GetAttrInt32)(KernelConstruction*, const char* name, std::int32_t*, Status*);
  void (*OpKernelConstruction_Failure)(KernelConstruction*, Status*);
  void (*OpKernelContext_Failure)(KernelContext*, Status*);
  void (*GetInput)(KernelContext*, int index, Tensor**, Status*);
  Tensor* (*AllocateOutput)(KernelContext*, int index, int type, const std::int64_t* dims, int dims_count,
                            std::size_t bytes, Status*);
  void (*RunAsyncOpKernelDoneCallback)(Done*);

  void (*DeleteTensor)(Tensor*);
  int (*TensorType)(const Tensor*);
  int (*NumDims)(const Tensor*);
  std::int64_t (*Dim)(const Tensor*, int index);
  std::size_t (*TensorByteSize)(const Tensor*);
  void* (*TensorData)(const Tensor*);
  std::int64_t (*TensorElementCount)(const Tensor*);
};

/// Returns nullptr after a line on standard error if the process has no TensorFlow, or one without these functions.
[[nodiscard]] const Api* load_api();
/// The table that load_api() has filled.
[[nodiscard]] const Api& api();

}  // namespace tributary::tensorflow

#pragma once

// Constants of MPI 3.1 that the library's own code does not read. abi_constants.cc gives them numbers.

#define TRIBUTARY_JAX_UNUSED_ERRORS(X)                                                                                 \
  X(ERR_ACCESS)                                                                                                        \
  X(ERR_AMODE) X(ERR_ASSERT) X(ERR_BAD_FILE) X(ERR_BASE) X(ERR_BUFFER) X(ERR_CONVERSION) X(ERR_DIMS) X(ERR_DISP)       \
      X(ERR_DUP_DATAREP) X(ERR_FILE) X(ERR_FILE_EXISTS) X(ERR_FILE_IN_USE) X(ERR_GROUP) X(ERR_INFO) X(ERR_INFO_KEY)    \
          X(ERR_INFO_NOKEY) X(ERR_INFO_VALUE) X(ERR_INTERN) X(ERR_IN_STATUS) X(ERR_IO) X(ERR_KEYVAL) X(ERR_LOCKTYPE)   \
              X(ERR_NAME) X(ERR_NOT_SAME) X(ERR_NO_MEM) X(ERR_NO_SPACE) X(ERR_NO_SUCH_FILE) X(ERR_PENDING) X(ERR_PORT) \
                  X(ERR_QUOTA) X(ERR_RANK) X(ERR_READ_ONLY) X(ERR_REQUEST) X(ERR_RMA_ATTACH) X(ERR_RMA_CONFLICT)       \
                      X(ERR_RMA_FLAVOR) X(ERR_RMA_RANGE) X(ERR_RMA_SHARED) X(ERR_RMA_SYNC) X(ERR_ROOT) X(ERR_SERVICE)  \
                          X(ERR_SIZE) X(ERR_SPAWN) X(ERR_TAG) X(ERR_TOPOLOGY) X(ERR_TRUNCATE) X(ERR_UNKNOWN)           \
                              X(ERR_UNSUPPORTED_DATAREP) X(ERR_WIN)

#define TRIBUTARY_JAX_UNUSED_NUMBERS(X)                                                                                \
  X(APPNUM)                                                                                                            \
  X(CART) X(COMBINER_CONTIGUOUS) X(COMBINER_DARRAY) X(COMBINER_DUP) X(COMBINER_F90_COMPLEX) X(COMBINER_F90_INTEGER)    \
      X(COMBINER_F90_REAL) X(COMBINER_HINDEXED) X(COMBINER_HINDEXED_BLOCK) X(COMBINER_HVECTOR) X(COMBINER_INDEXED)     \
          X(COMBINER_INDEXED_BLOCK) X(COMBINER_NAMED) X(COMBINER_RESIZED) X(COMBINER_STRUCT) X(COMBINER_SUBARRAY)      \
              X(COMBINER_VECTOR) X(COMM_TYPE_SHARED) X(CONGRUENT) X(DISTRIBUTE_BLOCK) X(DISTRIBUTE_CYCLIC)             \
                  X(DISTRIBUTE_DFLT_DARG) X(DISTRIBUTE_NONE) X(DIST_GRAPH) X(GRAPH) X(HOST) X(IDENT) X(IO)             \
                      X(LASTUSEDCODE) X(LOCK_EXCLUSIVE) X(LOCK_SHARED) X(MODE_APPEND) X(MODE_CREATE)                   \
                          X(MODE_DELETE_ON_CLOSE) X(MODE_EXCL) X(MODE_NOCHECK) X(MODE_NOPRECEDE) X(MODE_NOPUT)         \
                              X(MODE_NOSTORE) X(MODE_NOSUCCEED) X(MODE_RDONLY) X(MODE_RDWR) X(MODE_SEQUENTIAL)         \
                                  X(MODE_UNIQUE_OPEN) X(MODE_WRONLY) X(ORDER_C) X(ORDER_FORTRAN) X(SEEK_CUR)           \
                                      X(SEEK_END) X(SEEK_SET) X(SIMILAR) X(TAG_UB) X(TYPECLASS_COMPLEX)                \
                                          X(TYPECLASS_INTEGER) X(TYPECLASS_REAL) X(UNEQUAL) X(UNIVERSE_SIZE)           \
                                              X(WIN_BASE) X(WIN_CREATE_FLAVOR) X(WIN_DISP_UNIT) X(WIN_FLAVOR_ALLOCATE) \
                                                  X(WIN_FLAVOR_CREATE) X(WIN_FLAVOR_DYNAMIC) X(WIN_FLAVOR_SHARED)      \
                                                      X(WIN_MODEL) X(WIN_SEPARATE) X(WIN_SIZE) X(WIN_UNIFIED)          \
                                                          X(WTIME_IS_GLOBAL)

#define TRIBUTARY_JAX_UNUSED_TYPES(X)                                                                                 \
  X(2DOUBLE_PRECISION)                                                                                                \
  X(2INT) X(2INTEGER) X(2REAL) X(AINT) X(CHAR) X(CHARACTER) X(COMPLEX) X(COMPLEX16) X(COMPLEX32) X(COMPLEX8) X(COUNT) \
      X(CXX_BOOL) X(CXX_DOUBLE_COMPLEX) X(CXX_FLOAT_COMPLEX) X(CXX_LONG_DOUBLE_COMPLEX) X(C_BOOL)                     \
          X(C_LONG_DOUBLE_COMPLEX) X(DOUBLE_COMPLEX) X(DOUBLE_INT) X(DOUBLE_PRECISION) X(FLOAT_INT) X(INT) X(INTEGER) \
              X(INTEGER1) X(INTEGER2) X(INTEGER4) X(INTEGER8) X(LOGICAL) X(LONG) X(LONG_DOUBLE) X(LONG_DOUBLE_INT)    \
                  X(LONG_INT) X(LONG_LONG) X(LONG_LONG_INT) X(OFFSET) X(PACKED) X(REAL) X(REAL16) X(REAL4) X(REAL8)   \
                      X(SHORT) X(SHORT_INT) X(SIGNED_CHAR) X(UNSIGNED) X(UNSIGNED_CHAR) X(UNSIGNED_LONG)              \
                          X(UNSIGNED_LONG_LONG) X(UNSIGNED_SHORT) X(WCHAR)

#define TRIBUTARY_JAX_UNUSED_OPS(X) \
  X(BAND) X(BOR) X(BXOR) X(LAND) X(LOR) X(LXOR) X(MAXLOC) X(MINLOC) X(NO_OP) X(REPLACE)

#define TRIBUTARY_JAX_UNUSED_HANDLES(X) \
  X(ERRORS_ARE_FATAL) X(ERRORS_RETURN) X(GROUP_EMPTY) X(INFO_ENV) X(MESSAGE_NO_PROC)

#define TRIBUTARY_JAX_NULL_HANDLES(X) \
  X(ERRHANDLER_NULL) X(FILE_NULL) X(GROUP_NULL) X(INFO_NULL) X(MESSAGE_NULL) X(WIN_NULL)

#define TRIBUTARY_JAX_NULL_POINTERS(X)                                                                                \
  X(ARGVS_NULL)                                                                                                       \
  X(ARGV_NULL) X(BOTTOM) X(COMM_DUP_FN) X(COMM_NULL_COPY_FN) X(COMM_NULL_DELETE_FN) X(CONVERSION_FN_NULL) X(DUP_FN)   \
      X(ERRCODES_IGNORE) X(F_STATUSES_IGNORE) X(F_STATUS_IGNORE) X(NULL_COPY_FN) X(NULL_DELETE_FN) X(STATUSES_IGNORE) \
          X(STATUS_IGNORE) X(TYPE_DUP_FN) X(TYPE_NULL_COPY_FN) X(TYPE_NULL_DELETE_FN) X(UNWEIGHTED) X(WEIGHTS_EMPTY)  \
              X(WIN_DUP_FN) X(WIN_NULL_COPY_FN) X(WIN_NULL_DELETE_FN)

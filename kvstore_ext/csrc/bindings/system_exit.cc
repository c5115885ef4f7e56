// Which status a process is about to end with. Python drops a SystemExit before it runs the
// handlers at exit, and no hook sees one. So its type's initialiser notes what each one says.
#include "bindings/bindings.h"

namespace kvstore_ext {
namespace {

initproc initialise = nullptr;  // Python's own, once notes are taken; under the GIL, as all here
int last_status = 0;

// As Python turns the object that a SystemExit has been given into a status.
int StatusOf(PyObject* code) {
  if (code == Py_None) return 0;
  if (!PyLong_Check(code)) return 1;
  const long status = PyLong_AsLong(code);
  if (status == -1 && PyErr_Occurred() != nullptr) PyErr_Clear();
  return static_cast<int>(status) & 0xff;
}

int Initialise(PyObject* self, PyObject* arguments, PyObject* names) {
  const int result = initialise(self, arguments, names);
  if (result < 0) return result;
  PyObject* code = PyObject_GetAttrString(self, "code");
  if (code == nullptr) {
    PyErr_Clear();
    return result;
  }
  last_status = StatusOf(code);
  Py_DECREF(code);
  return result;
}

void NoteSystemExits() {
  if (initialise != nullptr) return;
  auto* type = reinterpret_cast<PyTypeObject*>(PyExc_SystemExit);
  initialise = type->tp_init;
  type->tp_init = &Initialise;
}

}  // namespace

void BindSystemExit(py::module_* module) {
  module->def("note_system_exits", &NoteSystemExits);
  module->def("last_system_exit", [] { return last_status; });
}

}  // namespace kvstore_ext

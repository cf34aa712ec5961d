"""Short names of kernels, as every profiler spells them."""

from __future__ import annotations

import pytest

from solscope.model.kernel_name import short_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("gemm", "gemm"),
        ("void f<(Kind)4>(int)", "f"),
        ("void (anonymous namespace)::multimem_all_reduce<T, 16>(T)", "multimem_all_reduce"),
        (
            "std::enable_if<(((8)>(0)))&&ns::is<T>::exists, void>::type ns::rms_norm<T, 8>(T*)",
            "rms_norm",
        ),
        ("decode/void a::b<c/d>(int)", "b"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("_Z4gemmPfS_", "gemm"),
        ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdEEEvT0_", "kentry"),
        ("_ZNK2ns1kEv", "k"),
        ("_Z9short", "_Z9short"),
        ("_ZTI", "_ZTI"),
        ("f(int) [clone .cold]", "f"),
        ("a<(b>c)>", "a"),
        ("gemm [clone .kd]", "gemm"),
        ("copy_blocked[v1,cw51](Array<long long, 1, C>, long long)", "copy_blocked"),
        (
            "void unnamed>::fill<float, 4, void n::f<G *>(const T &)::[lambda() (instance 1)]::"
            "operator ()() lambda() (instance 2)]::g>(int)",
            "fill",
        ),
        ("vec_add(float *, int)", "vec_add"),
        ("void a::b<(int)4, c<d>>(e<f>, int)", "b"),
        ("<unnamed>::saxpy(float)", "saxpy"),
        ("unnamed>::saxpy(float)", "saxpy"),
        ("nvjet_hsh_128x64", "nvjet_hsh_128x64"),
        ("_ZN2at6native6kernelIfEEvPT_", "kernel"),
        ("<>", "<>"),
        ("", ""),
    ],
)
def test_the_functions_own_name_is_found(name: str, short: str) -> None:
    assert short_name(name) == short

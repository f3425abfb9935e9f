! MXM: C = A B.
#include "sizes.h"

! Four columns of A at a time, added to all of C: long vectors, and C comes from the cache again and again.
subroutine mxm_unchanged(a, b, c) bind(c, name='mxm_unchanged_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: l = MXM_L, m = MXM_M, n = MXM_N
  real(c_double), intent(in) :: a(l, m), b(m, n)
  real(c_double), intent(out) :: c(l, n)
  integer :: i, j, k
  do k = 1, n
    do i = 1, l
      c(i, k) = 0
    end do
  end do
  do j = 1, m, 4
    do k = 1, n
      do i = 1, l
        c(i, k) = c(i, k) + a(i, j)*b(j, k) + a(i, j + 1)*b(j + 1, k) + a(i, j + 2)*b(j + 2, k) + a(i, j + 3)*b(j + 3, k)
      end do
    end do
  end do
end subroutine mxm_unchanged

! Loops interchanged and cut: a tile of C stays in registers for the whole of the sum.
subroutine mxm_optimised(a, b, c) bind(c, name='mxm_optimised_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: l = MXM_L, m = MXM_M, n = MXM_N, rows = 16
  real(c_double), intent(in) :: a(l, m), b(m, n)
  real(c_double), intent(out) :: c(l, n)
  real(c_double), dimension(rows) :: c1, c2, c3, c4
  integer :: i, j, k, first
  do k = 1, n, 4
    do first = 0, l - rows, rows
      c1 = 0
      c2 = 0
      c3 = 0
      c4 = 0
      do j = 1, m
        do i = 1, rows
          c1(i) = c1(i) + a(first + i, j)*b(j, k)
          c2(i) = c2(i) + a(first + i, j)*b(j, k + 1)
          c3(i) = c3(i) + a(first + i, j)*b(j, k + 2)
          c4(i) = c4(i) + a(first + i, j)*b(j, k + 3)
        end do
      end do
      do i = 1, rows
        c(first + i, k) = c1(i)
        c(first + i, k + 1) = c2(i)
        c(first + i, k + 2) = c3(i)
        c(first + i, k + 3) = c4(i)
      end do
    end do
  end do
end subroutine mxm_optimised

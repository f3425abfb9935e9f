! GMTRY: the influence of the walls of some bodies in a periodic flow on each other (the stream function of a row of vortices),
! and that matrix factored as L U without pivoting, the diagonal of U inverted.  wall: x, y, length of each.
#include "sizes.h"

! By rows: the innermost loop has the stride of a column.
subroutine gmtry_unchanged(wall, matrix) bind(c, name='gmtry_unchanged_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: n = GMTRY_WALLS
  real(c_double), intent(in) :: wall(n, 3)
  real(c_double), intent(out) :: matrix(n, n)
  real(c_double) :: across, along
  integer :: i, j, k
  do i = 1, n
    do j = 1, n
      if (i == j) then
        matrix(i, j) = 1 - log(0.5d0*wall(j, 3))
      else
        across = exp(0.5d0*(wall(i, 2) - wall(j, 2)))
        across = across - 1/across
        along = sin(0.5d0*(wall(i, 1) - wall(j, 1)))
        matrix(i, j) = -0.5d0*log(across*across + 4*along*along)
      end if
    end do
  end do
  do k = 1, n
    matrix(k, k) = 1/matrix(k, k)
    do i = k + 1, n
      matrix(i, k) = matrix(i, k)*matrix(k, k)
      do j = k + 1, n
        matrix(i, j) = matrix(i, j) - matrix(i, k)*matrix(k, j)
      end do
    end do
  end do
end subroutine gmtry_unchanged

! Loops interchanged: by columns, and without a branch in the innermost loop.
subroutine gmtry_optimised(wall, matrix) bind(c, name='gmtry_optimised_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: n = GMTRY_WALLS
  real(c_double), intent(in) :: wall(n, 3)
  real(c_double), intent(out) :: matrix(n, n)
  integer :: i, j, k
  do j = 1, n
    call influence(j, 1, j - 1)
    matrix(j, j) = 1 - log(0.5d0*wall(j, 3))
    call influence(j, j + 1, n)
  end do
  do k = 1, n
    matrix(k, k) = 1/matrix(k, k)
    do i = k + 1, n
      matrix(i, k) = matrix(i, k)*matrix(k, k)
    end do
    do j = k + 1, n
      do i = k + 1, n
        matrix(i, j) = matrix(i, j) - matrix(i, k)*matrix(k, j)
      end do
    end do
  end do
contains
  subroutine influence(j, first, last)
    integer, intent(in) :: j, first, last
    real(c_double) :: across, along
    integer :: i
    do i = first, last
      across = exp(0.5d0*(wall(i, 2) - wall(j, 2)))
      across = across - 1/across
      along = sin(0.5d0*(wall(i, 1) - wall(j, 1)))
      matrix(i, j) = -0.5d0*log(across*across + 4*along*along)
    end do
  end subroutine influence
end subroutine gmtry_optimised

! EMIT: the stream function that vortices of a periodic flow have at the walls, the strengths of the vortices that the walls emit
! against it (by the inverse of their influence on each other), and where those begin.  vortex: x, y, strength;  wall: x, y, and
! the direction away from it;  new: strength, x, y.  Exponentials, sines and logarithms: the source's optimised version is this one.
#include "sizes.h"

subroutine emit_unchanged(vortex, wall, inverse, new) bind(c, name='emit_unchanged_'//SET)
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: n = EMIT_WALLS, vortices = EMIT_VORTICES
  real(c_double), parameter :: away = 0.0078125d0
  real(c_double), intent(in) :: vortex(vortices, 3), wall(n, 4), inverse(n, n)
  real(c_double), intent(out) :: new(n, 3)
  real(c_double) :: across, along, stream(n)
  integer :: i, j, v
  do i = 1, n
    stream(i) = 0
  end do
  do v = 1, vortices
    do i = 1, n
      across = exp(0.5d0*(wall(i, 2) - vortex(v, 2)))
      across = across - 1/across
      along = sin(0.5d0*(wall(i, 1) - vortex(v, 1)))
      stream(i) = stream(i) + vortex(v, 3)*log(across*across + 4*along*along)
    end do
  end do
  do i = 1, n
    new(i, 1) = 0
    new(i, 2) = wall(i, 1) + away*wall(i, 3)
    new(i, 3) = wall(i, 2) + away*wall(i, 4)
  end do
  do j = 1, n
    do i = 1, n
      new(i, 1) = new(i, 1) + inverse(i, j)*stream(j)
    end do
  end do
end subroutine emit_unchanged
